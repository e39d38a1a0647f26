import assert from "node:assert/strict";
import { test } from "node:test";
import { doublingMs } from "../../src/runtime/doubling.ts";

test("a wait doubles each time, up to its maximum", () => {
  const wait = { firstMs: 10, longestMs: 70 };
  assert.deepEqual(
    [0, 1, 2, 3, 31, Number.MAX_SAFE_INTEGER].map((times) => doublingMs(wait, times)),
    [10, 20, 40, 70, 70, 70],
  );
});
