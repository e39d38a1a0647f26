import assert from "node:assert/strict";
import { test } from "node:test";
import { lastEnd, nextPartition, outdatedPartition } from "../../../src/core/admin/audit-partitions.ts";

const DAY = 86_400_000;
/** The middle of day 100. */
const NOW = 100.5 * DAY;

const cases: Record<string, { keptDays: number; lastEnd: number | null; next: readonly [number, number] | null }> = {
  "entries of a year have partitions of a month": { keptDays: 365, lastEnd: 108, next: [108, 139] },
  "the next one begins where the last one ends": { keptDays: 30, lastEnd: 105, next: [105, 108] },
  "entries of a day have partitions of a day": { keptDays: 1, lastEnd: 104, next: [104, 105] },
  "a week of partitions is enough": { keptDays: 1, lastEnd: 108, next: null },
  "less than a week is not": { keptDays: 1, lastEnd: 107, next: [107, 108] },
  "long partitions are made one ahead": { keptDays: 365, lastEnd: 131, next: [131, 162] },
  "one ahead is enough": { keptDays: 365, lastEnd: 132, next: null },
  "after weeks without a process it begins a day from now": { keptDays: 365, lastEnd: 60, next: [102, 133] },
  "also if the last one ends within a day": { keptDays: 365, lastEnd: 101, next: [102, 133] },
  "and if only the default partition is left": { keptDays: 365, lastEnd: null, next: [102, 133] },
};
for (const [name, { keptDays, lastEnd: last, next }] of Object.entries(cases)) {
  test(`partitions: ${name}`, () => {
    const made = nextPartition(last === null ? null : last * DAY, { nowMs: NOW, keptMs: keptDays * DAY });
    assert.deepEqual(made && [made.fromMs / DAY, made.endMs / DAY], next);
  });
}

test("a partition leaves once its last moment is old, the oldest first, and the default one never", () => {
  const partitions = [
    { name: "first", endMs: 10 },
    { name: "next", endMs: 20 },
    { name: "default", endMs: null },
  ];
  assert.equal(outdatedPartition(partitions, 9), null);
  assert.equal(outdatedPartition(partitions, 10)?.name, "first");
  assert.equal(outdatedPartition(partitions.slice(1), 19), null);
  assert.equal(outdatedPartition(partitions.slice(2), 99), null);
  assert.deepEqual([lastEnd(partitions), lastEnd(partitions.slice(2))], [20, null]);
});
