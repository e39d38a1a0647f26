import assert from "node:assert/strict";
import { test } from "node:test";
import { GRANTS_MAX } from "../../src/core/quota/allocations.ts";
import { BatchSize } from "../../src/planner/batch-size.ts";

test("a batch is full while nobody else is granted tokens, and smaller after one that others came before", () => {
  const size = new BatchSize();
  const after = (...fences: readonly number[]) => {
    size.note(fences.map(BigInt));
    return size.max;
  };
  assert.equal(size.max, GRANTS_MAX);
  assert.equal(after(40, 41), GRANTS_MAX, "others may have come before the first batch at any time");
  assert.equal(after(42), GRANTS_MAX);
  const beside = after(44);
  assert.ok(beside < GRANTS_MAX && beside > 0, `${beside}`);
  assert.equal(after(), beside, "a batch without grants tells nothing");
  assert.equal(after(44, 41), beside, "nor does one that was granted before");
  assert.equal(after(45, 46, 47), GRANTS_MAX);
  assert.equal(after(48, 50), beside);
});
