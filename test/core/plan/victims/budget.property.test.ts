import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BUDGET_WINDOW_MS, DEFAULT_POLICY } from "../../../../src/core/plan/model/queue-policy.ts";
import type { PastPreemption } from "../../../../src/core/plan/model/snapshot.ts";
import { overBudget } from "../../../../src/core/plan/victims/budget.ts";

const queueWith = (preemptionsPerHour: number | null, preempted: readonly PastPreemption[]) => {
  return { name: "q", policy: { ...DEFAULT_POLICY, preemptionsPerHour }, preempted };
};
const NONE_PLANNED = 0;

test("preemptions that the budget allows are never more than it within any hour", () => {
  const tries = fc.array(fc.record({ laterMs: fc.nat(1_500_000), needed: fc.integer({ min: 1, max: 4 }) }), {
    minLength: 20,
    maxLength: 40,
  });
  fc.assert(
    fc.property(fc.nat(6), tries, (max, all) => {
      const done: PastPreemption[] = [];
      let atMs = 0;
      for (const { laterMs, needed } of all) {
        atMs += laterMs;
        const over = overBudget(queueWith(max, done), { needed, planned: NONE_PLANNED }, atMs);
        if (over === null) done.push({ atMs, victims: needed });
      }
      for (const { atMs: from } of done) {
        const within = done.filter((one) => one.atMs >= from && one.atMs < from + BUDGET_WINDOW_MS);
        assert.ok(within.reduce((sum, { victims }) => sum + victims, 0) <= max);
      }
    }),
  );
});

test("the time that a refusal names is the first at which the budget allows it, if nothing else uses it", () => {
  const past = fc.array(
    fc.record({ atMs: fc.integer({ min: -4_000_000, max: 0 }), victims: fc.integer({ min: 1, max: 3 }) }),
  );
  fc.assert(
    fc.property(fc.nat(8), past, fc.integer({ min: 1, max: 4 }), fc.nat(2), (max, preempted, needed, planned) => {
      const queue = queueWith(max, preempted);
      const over = overBudget(queue, { needed, planned }, 0);
      if (needed > max) assert.deepEqual(over, { queue: "q", max, untilMs: null });
      else if (over === null) {
        const used = preempted.filter(({ atMs }) => atMs + BUDGET_WINDOW_MS > 0);
        assert.ok(used.reduce((sum, { victims }) => sum + victims, 0) + planned + needed <= max);
      } else {
        const { untilMs } = over;
        assert.ok(untilMs !== null && untilMs > 0);
        const after = { ...queue, preempted: [...preempted, ...(planned > 0 ? [{ atMs: 0, victims: planned }] : [])] };
        const at = (nowMs: number) => overBudget(after, { needed, planned: NONE_PLANNED }, nowMs);
        assert.notEqual(at(untilMs - 1), null);
        assert.equal(at(untilMs), null);
      }
    }),
  );
});

test("a queue without a budget allows everything", () => {
  const preempted = [{ atMs: 0, victims: 1_000 }];
  assert.equal(overBudget(queueWith(null, preempted), { needed: 1_000, planned: 1_000 }, 0), null);
});
