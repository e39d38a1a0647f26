import assert from "node:assert/strict";
import { test } from "node:test";
import { charsLeft } from "../../src/runtime/chars-left.ts";

test("texts, names and values take characters", () => {
  assert.equal(charsLeft("abc", 10), 5);
  assert.equal(charsLeft({ ab: "c", d: [1] }, 100), 100 - 3 - 4 - 3 - 3 - 3 - 3 - 3);
  assert.ok(charsLeft(["a".repeat(50), "b".repeat(50)], 100) < 0);
});

test("a value that takes more is not read to its end", () => {
  const value = {
    text: "a".repeat(100),
    get more(): string {
      throw new Error("was read");
    },
  };
  assert.ok(charsLeft(value, 100) < 0);
  assert.throws(() => charsLeft(value, 1000), /was read/);
});
