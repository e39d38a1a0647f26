import assert from "node:assert/strict";
import { test } from "node:test";
import { compareText } from "../../src/runtime/compare-text.ts";

test("texts are ordered by their code units, in every locale", () => {
  const ordered = ["", "A", "Z", "_", "a", "a-", "a0", "aa", "ä"];
  assert.deepEqual(ordered.toReversed().sort(compareText), ordered);
  assert.equal(compareText("a", "a"), 0);
});
