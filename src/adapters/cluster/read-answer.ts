/** Reads what an API server sends, within bounds: a cluster that is broken or hostile must not fill our memory. */
import type { JsonObject } from "../../runtime/json.ts";
import { isJsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { Slices } from "../../runtime/slices.ts";
import type { RunCode } from "./connection-pool.ts";
import { GrowingBytes } from "./growing-bytes.ts";
import { SplitList } from "./split-list.ts";

type Chunks = AsyncIterable<Uint8Array>;

/** Room for a page of 500 large objects. It is parsed item by item, so that others get turns. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Far more than the `Status` object of a refusal has. */
const REFUSAL_BYTES_MAX = 64 * 1024;
/** An object has at most 1.5 MiB in etcd, and JSON is longer than what is stored. */
const OBJECT_BYTES_MAX = 8 * 1024 * 1024;
/** Forty times a page. A server that does not know pages may send all its objects at once. */
const ITEMS_MAX = 20_000;
/** An answer that takes longer comes from a server that sends a byte now and then. */
const ANSWER_MS_MAX = 120_000;
const LINE_BREAK = 0x0a;
/** The bytes read between two looks at the clock. */
const PIECE_BYTES = 16 * 1024;

/**
 * The JSON object of an answer; an empty object for any other text. Parses the items of a list one by one while they
 * arrive, and pauses in between. Throws if the answer is too long or too slow. `run` runs the parts between pauses.
 */
export async function readObject(body: Chunks, run: RunCode = runNow): Promise<JsonObject> {
  const items: unknown[] = [];
  let isValid = true;
  const list = new SplitList({ partBytesMax: OBJECT_BYTES_MAX, itemsMax: ITEMS_MAX }, (text) => {
    const item = parse(text);
    if (item === undefined) isValid = false;
    else items.push(item);
  });
  const slices = new Slices();
  for await (const chunk of bounded(body, ANSWER_BYTES_MAX)) {
    for (let from = 0; from < chunk.byteLength; from += PIECE_BYTES) {
      if (slices.isOver) await slices.pause();
      run(() => list.append(chunk.subarray(from, from + PIECE_BYTES)));
    }
  }
  const rest = run(() => parseObject(list.rest()));
  if (rest === null || !isValid) return {};
  return Array.isArray(rest["items"]) && items.length > 0 ? { ...rest, items: items as readonly JsonObject[] } : rest;
}

const runNow: RunCode = (code) => code();

/** The JSON object of a refusal. Any other answer of a server or a proxy gives an empty object; no text is kept. */
export async function readRefusal(body: Chunks): Promise<JsonObject> {
  try {
    return parseObject(await readText(body, REFUSAL_BYTES_MAX)) ?? {};
  } catch {
    return {};
  }
}

async function readText(body: Chunks, bytesMax: number): Promise<string> {
  const text = new GrowingBytes();
  for await (const chunk of bounded(body, bytesMax)) text.append(chunk);
  return text.take();
}

/** Passes the chunks of an answer on. Throws once it is too long or too slow. */
async function* bounded(body: Chunks, bytesMax: number): AsyncGenerator<Uint8Array> {
  const endMs = performance.now() + ANSWER_MS_MAX;
  let bytes = 0;
  // Leaving the loop closes the connection.
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) throw new Error(`the answer has more than ${bytesMax} bytes`);
    if (performance.now() > endMs) throw new Error(`the answer takes more than ${ANSWER_MS_MAX / 1000} s`);
    yield chunk;
  }
}

/**
 * Splits a stream into lines of JSON. An incomplete last line is dropped. Throws for a line that is too long or is no
 * JSON object.
 */
export async function* jsonLines(body: Chunks, run: RunCode = runNow): AsyncGenerator<JsonObject> {
  const rest = new GrowingBytes();
  const slices = new Slices();
  for await (const chunk of body) {
    let from = 0;
    if (slices.isOver) await slices.pause();
    for (let end = chunk.indexOf(LINE_BREAK); end >= 0; end = chunk.indexOf(LINE_BREAK, from)) {
      rest.append(chunk.subarray(from, end));
      from = end + 1;
      const line = rest.take();
      if (line !== "") yield run(() => parsedLine(line));
    }
    rest.append(chunk.subarray(from));
    if (rest.length > OBJECT_BYTES_MAX) {
      throw new Error(`the watch sent a line of more than ${OBJECT_BYTES_MAX} bytes`);
    }
  }
}

/** The objects of a list, each with a name. Null: the answer is no list. An empty list may omit its items. */
export function itemsOf(list: JsonObject): readonly JsonObject[] | null {
  const items = list["items"] ?? (stringAt(list, "kind")?.endsWith("List") ? [] : null);
  return Array.isArray(items) && items.every(hasName) ? items : null;
}

function hasName(item: unknown): item is JsonObject {
  return (stringAt(objectAt(item, "metadata"), "name") ?? "") !== "";
}

function parsedLine(line: string): JsonObject {
  const event = parseObject(line);
  if (event === null) throw new Error("the watch sent a line that is no JSON object");
  return event;
}

function parseObject(text: string): JsonObject | null {
  const value = parse(text);
  return isJsonObject(value) ? value : null;
}

/** Undefined: the text is no JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
