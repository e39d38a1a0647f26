import assert from "node:assert/strict";
import { test } from "node:test";
import { getOrCreate } from "../../src/runtime/get-or-create.ts";

test("a value is made once for each key, and kept", () => {
  const map = new Map([["a", 1]]);
  let made = 1;
  const next = () => {
    made += 1;
    return made;
  };
  assert.deepEqual(
    ["a", "b", "b", "c"].map((key) => getOrCreate(map, key, next)),
    [1, 2, 2, 3],
  );
  assert.deepEqual(
    [...map],
    [
      ["a", 1],
      ["b", 2],
      ["c", 3],
    ],
  );
});
