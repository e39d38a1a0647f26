/** Reads what an API server sends, within bounds: a cluster that is broken or hostile must not fill our memory. */
import type { JsonObject } from "../../runtime/json.ts";
import { isJsonObject, objectAt, stringAt } from "../../runtime/json.ts";

type Chunks = AsyncIterable<Uint8Array>;

/** Room for a page of 500 large objects. Parsing that much blocks this process for some tenths of a second. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Far more than the `Status` object of a refusal has. */
const REFUSAL_BYTES_MAX = 64 * 1024;
/** An object has at most 1.5 MiB in etcd, and JSON is longer than what is stored. */
const LINE_BYTES_MAX = 8 * 1024 * 1024;
/** An answer that takes longer comes from a server that sends a byte now and then. */
const ANSWER_MS_MAX = 120_000;
const LINE_BREAK = 0x0a;

/** The JSON object of an answer; an empty object for any other text. Throws if the answer is too long or too slow. */
export async function readObject(body: Chunks): Promise<JsonObject> {
  return parseObject(await readText(body, ANSWER_BYTES_MAX)) ?? {};
}

/** The JSON object of a refusal. Any other answer of a server or a proxy gives an empty object; no text is kept. */
export async function readRefusal(body: Chunks): Promise<JsonObject> {
  try {
    return parseObject(await readText(body, REFUSAL_BYTES_MAX)) ?? {};
  } catch {
    return {};
  }
}

async function readText(body: Chunks, bytesMax: number): Promise<string> {
  const text = new GrowingText();
  const endMs = performance.now() + ANSWER_MS_MAX;
  // Leaving the loop closes the connection.
  for await (const chunk of body) {
    if (text.length + chunk.byteLength > bytesMax) throw new Error(`the answer has more than ${bytesMax} bytes`);
    if (performance.now() > endMs) throw new Error(`the answer takes more than ${ANSWER_MS_MAX / 1000} s`);
    text.append(chunk);
  }
  return text.take();
}

/** Bytes in one buffer that doubles: a server may send them one at a time. */
class GrowingText {
  #buffer = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  append(chunk: Uint8Array): void {
    const needed = this.#length + chunk.byteLength;
    if (needed > this.#buffer.length) {
      const grown = Buffer.alloc(Math.max(needed, this.#buffer.length * 2));
      this.#buffer.copy(grown, 0, 0, this.#length);
      this.#buffer = grown;
    }
    this.#buffer.set(chunk, this.#length);
    this.#length = needed;
  }

  /** Returns the text and begins a new one. */
  take(): string {
    const text = this.#buffer.toString("utf8", 0, this.#length);
    this.#buffer = Buffer.alloc(0);
    this.#length = 0;
    return text;
  }
}

/**
 * Splits a stream into lines of JSON. An incomplete last line is dropped. Throws for a line that is too long or is no
 * JSON object.
 */
export async function* jsonLines(body: Chunks): AsyncGenerator<JsonObject> {
  const rest = new GrowingText();
  for await (const chunk of body) {
    let from = 0;
    for (let end = chunk.indexOf(LINE_BREAK); end >= 0; end = chunk.indexOf(LINE_BREAK, from)) {
      rest.append(chunk.subarray(from, end));
      from = end + 1;
      const line = rest.take();
      if (line !== "") yield parsedLine(line);
    }
    rest.append(chunk.subarray(from));
    if (rest.length > LINE_BYTES_MAX) throw new Error(`the watch sent a line of more than ${LINE_BYTES_MAX} bytes`);
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
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}
