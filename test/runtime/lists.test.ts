import assert from "node:assert/strict";
import { test } from "node:test";
import { append, maxOf, minOf } from "../../src/runtime/lists.ts";

test("lists of any length are appended, and compared", () => {
  const numbers = Array.from({ length: 1_000_000 }, (_, at) => at);
  const list = [-1];
  append(list, numbers);
  assert.deepEqual([list.length, list[0], list.at(-1)], [1_000_001, -1, 999_999]);
  assert.deepEqual([maxOf(numbers), minOf(numbers)], [999_999, 0]);
});

test("the greatest and the least of nothing are what was given, as with Math", () => {
  assert.deepEqual([maxOf([], 5), minOf([], 5)], [5, 5]);
  assert.deepEqual([maxOf([]), minOf([])], [Math.max(), Math.min()]);
  assert.ok(Number.isNaN(maxOf([1, Number.NaN], 5)));
});
