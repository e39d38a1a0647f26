/** A list is split while it arrives, item by item, so that no list blocks the process for as long as it is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readObject } from "../../src/adapters/cluster/read-answer.ts";
import { SplitList } from "../../src/adapters/cluster/split-list.ts";

/** Yields a text in pieces of these sizes, again and again. */
async function* piecesOf(text: string, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0, piece = 0; at < bytes.length; piece += 1) {
    const size = sizes[piece % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

const texts: Record<string, string> = {
  "a list": '{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"a":1},{"b":[1,{"c":"],}"}]}]}',
  "a list with its metadata last": '{"items" : [ {"a":1} , 2 ] , "metadata":{"continue":"x"}}',
  "an empty list": '{"kind":"PodList","items":[]}',
  "an empty list with spaces": '{"items":[ \n ],"kind":"PodList"}',
  "items that are null": '{"kind":"PodList","items":null}',
  "items that are an object": '{"items":{"a":[1,2]}}',
  "an object without items": '{"kind":"Status","details":{"items":[1,2]}}',
  "items as a value": '{"a":"items","b":[1,2],"items":[3]}',
  "items behind a list of the same name": '{"a":["items",[1,2]],"items":[3]}',
  "an escaped key": '{"\\"items":[1],"items\\"":[2]}',
  "quotes and brackets in texts": '{"items":[{"a":"\\\\\\"]}"},"[{,"]}',
  "items twice: the first ones count": '{"items":[1,2],"b":0}',
  "other scripts": '{"items":[{"ü":"日本"},{"𝄞":"é"}]}',
  "no object": "[1,2]",
  "no JSON": '{"items":[{"a":1},',
  "an item that is no JSON": '{"items":[{"a":1},nope]}',
  "a comma too many": '{"items":[1,]}',
  nothing: "",
};
for (const [name, text] of Object.entries(texts)) {
  test(`the parts of an answer are those of the whole text: ${name}`, async () => {
    for (const sizes of [[1], [2, 3], [7], [10_000]]) {
      assert.deepEqual(await readObject(piecesOf(text, sizes)), whole(text), `${sizes}`);
    }
  });
}

test("whatever JSON an answer is, and however it is cut, its parts are those of the whole text", async () => {
  const member = fc.oneof(fc.constant("items"), fc.string({ maxLength: 6 }), fc.constant('"items":['));
  const object = fc.dictionary(member, fc.jsonValue({ maxDepth: 4 }), { maxKeys: 4 });
  const list = fc.record({
    kind: fc.string(),
    items: fc.array(fc.jsonValue({ maxDepth: 3 })),
    metadata: fc.jsonValue(),
  });
  const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });
  const law = fc.asyncProperty(fc.oneof(object, list), sizes, fc.constantFrom(0, 2), async (value, cuts, indent) => {
    const text = JSON.stringify(value, null, indent);
    assert.deepEqual(await readObject(piecesOf(text, cuts)), whole(text));
  });
  await fc.assert(law, { numRuns: 500, seed: 3 });
});

test("no item is longer than it may be, and no more items than there may be are read", () => {
  const read = (text: string) => {
    const found: string[] = [];
    const list = new SplitList({ partBytesMax: 100, itemsMax: 3 }, (item) => found.push(item));
    try {
      list.append(Buffer.from(text));
      return found;
    } catch (error) {
      return String(error);
    }
  };
  assert.deepEqual(read('{"items":[1,2,3]}'), ["1", "2", "3"]);
  assert.match(String(read('{"items":[1,2,3,4]}')), /more than 3 items/);
  assert.match(String(read(`{"items":["${"x".repeat(100)}"]}`)), /a part of more than 100 bytes/);
  assert.match(String(read(`{"a":"${"x".repeat(100)}"`)), /a part of more than 100 bytes/);
  assert.match(String(read("[".repeat(2_000))), /nests deeper/);
});

test("others have turns while a large list is read", async () => {
  const item = JSON.stringify({ metadata: { name: "a", labels: { a: "b".repeat(2_000) } } });
  const text = `{"items":[${Array.from({ length: 15_000 }, () => item).join(",")}]}`;
  assert.ok(text.length > 30_000_000);
  let turns = 0;
  let isDone = false;
  const turn = () => {
    turns += 1;
    if (!isDone) setImmediate(turn);
  };
  setImmediate(turn);
  // One chunk: nothing but the reader gives turns.
  const object = await readObject(piecesOf(text, [text.length]));
  isDone = true;
  assert.equal((object["items"] as unknown[]).length, 15_000);
  assert.ok(turns >= 5, `${turns} turns`);
});

test("an answer with too many items is refused, however short they are", async () => {
  const text = `{"items":[${"{},".repeat(30_000)}{}]}`;
  await assert.rejects(readObject(piecesOf(text, [65_536])), /more than 20000 items/);
});

/** What the whole text means: an empty object if it is no object. */
function whole(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}
