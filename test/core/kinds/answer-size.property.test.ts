import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { passedAnswerBound } from "../../../src/core/kinds/answer-size.ts";

const depthMax = 64;

test("an answer within its bound has no more bytes of JSON than the bound", () => {
  fc.assert(
    fc.property(fc.object({ withNullPrototype: true, maxDepth: 5 }), fc.nat({ max: 400 }), (answer, bytesMax) => {
      if (passedAnswerBound(answer, { bytesMax, depthMax }) !== null) return;
      assert.ok(Buffer.byteLength(JSON.stringify(answer)) <= bytesMax);
    }),
  );
});

test("an answer is refused only if its JSON comes near the bound", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (answer) => {
      const bytes = Buffer.byteLength(JSON.stringify(answer));
      assert.equal(passedAnswerBound(answer, { bytesMax: bytes + bytes / 2 + 2, depthMax }), null);
    }),
  );
});

/** An object within itself, so many times. */
function nested(depth: number): object {
  let inner: object = {};
  for (let at = 1; at < depth; at += 1) inner = at % 2 === 0 ? [inner] : { inner };
  return inner;
}

test("the deepest answer that is allowed", () => {
  const bounds = { bytesMax: 1_000, depthMax };
  assert.equal(passedAnswerBound(nested(64), bounds), null);
  assert.equal(passedAnswerBound(nested(65), bounds), "more than 64 lists and objects within each other");
});

/** Answers whose JSON has no end, or a size that nothing has room for. */
const endless: Record<string, () => unknown> = {
  "an object that contains itself": () => {
    const answer: Record<string, unknown> = {};
    answer["self"] = answer;
    return answer;
  },
  "lists that contain one another twice, 60 times": () => {
    let shared: unknown = "x";
    for (let at = 0; at < 60; at += 1) shared = [shared, shared];
    return shared;
  },
  "a list of empty places": () => new Array(100_000_000),
  "a text of 100 MB a thousand times": () => Array(1_000).fill("\u0000".repeat(100_000_000)),
};
for (const [name, answer] of Object.entries(endless)) {
  test(`${name} is refused at the bound`, () => {
    assert.match(passedAnswerBound(answer(), { bytesMax: 1_000_000, depthMax }) ?? "", /^more than /);
  });
}
