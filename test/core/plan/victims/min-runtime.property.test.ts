import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DEFAULT_POLICY } from "../../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../../src/core/plan/model/snapshot.ts";
import { QuotaState } from "../../../../src/core/plan/usage/quota-state.ts";
import { membersToTake, minRuntimeMs, protectedUntilMs } from "../../../../src/core/plan/victims/min-runtime.ts";
import { afterPreemption } from "../../../../src/core/reconcile/undo/admission-backoff.ts";
import { queue } from "../plan-world.ts";
import { emptyState, someQueues } from "../usage/tree-world.ts";

const someTime = fc.option(fc.nat(20), { freq: 2 });
const worlds = fc
  .tuple(someQueues, fc.array(fc.tuple(someTime, someTime), { minLength: 7, maxLength: 7 }), fc.nat(), fc.nat())
  .map(([drawn, times, one, other]) => {
    const queues = drawn.map((queue, at) => {
      const [minRuntimePreemptMs, minRuntimeReclaimMs] = times[at] as readonly [number | null, number | null];
      return { ...queue, policy: { ...queue.policy!, minRuntimePreemptMs, minRuntimeReclaimMs } };
    });
    return { queues, victim: `q${one % drawn.length}`, taker: `q${other % drawn.length}` };
  });

/** The queues from one up to its root, by their names alone. */
function path(queues: readonly PlanQueue[], name: string): readonly PlanQueue[] {
  const queue = queues.find((one) => one.name === name)!;
  return queue.parent === null ? [queue] : [queue, ...path(queues, queue.parent)];
}

function nearest(values: readonly (number | null)[]): number {
  return values.find((value) => value !== null) ?? 0;
}

test("the minimum run time is the nearest one: for reclaim from the highest queue not above the preemptor", () => {
  let reclaimed = 0;
  const property = fc.property(worlds, ({ queues, victim, taker: preemptor }) => {
    const state = emptyState(queues);
    const found = minRuntimeMs(state.branches.leaf(victim)!, state.branches.leaf(preemptor)!);
    const up = path(queues, victim);
    if (victim === preemptor) {
      assert.equal(found, nearest(up.map(({ policy }) => policy!.minRuntimePreemptMs)));
      return;
    }
    const preemptors = new Set(path(queues, preemptor).map(({ name }) => name));
    const apart = up.filter(({ name }) => !preemptors.has(name));
    const from = up.slice(Math.max(0, apart.length - 1));
    const value = nearest(from.map(({ policy }) => policy!.minRuntimeReclaimMs));
    if (value > 0) reclaimed += 1;
    assert.equal(found, value);
  });
  fc.assert(property, { numRuns: 1000 });
  assert.ok(reclaimed > 0);
});

test("a gang is protected from its start until its minimum run time is over, and then may lose all members", () => {
  const members = fc.record({ running: fc.nat(8), min: fc.nat(8) });
  fc.assert(
    fc.property(members, fc.nat(20), fc.nat(20), fc.nat(60), (of, startMs, minRuntime, nowMs) => {
      const most = membersToTake(of, { untilMs: protectedUntilMs(startMs, minRuntime), nowMs });
      const isOver = nowMs - startMs >= minRuntime;
      assert.equal(most, isOver ? of.running : Math.max(0, of.running - of.min));
      assert.equal(membersToTake(of, { untilMs: protectedUntilMs(null, minRuntime), nowMs }), of.running);
    }),
  );
});

const defaults: Record<string, { readonly preemptions: number; readonly ms: number }> = {
  "never preempted": { preemptions: 0, ms: 0 },
  once: { preemptions: 1, ms: 1_000 },
  "four times": { preemptions: 4, ms: 8_000 },
  "as often as the backoff doubles": { preemptions: 11, ms: 600_000 },
};
for (const [name, { preemptions, ms }] of Object.entries(defaults)) {
  test(`where no minimum is set, a gang runs as long as it had to wait after its last preemption: ${name}`, () => {
    const queues = [queue("all", {}), queue("one", {}, { parent: "all" }), queue("other", {}, { parent: "all" })];
    const state = new QuotaState();
    for (const one of queues) state.setQueue(one.name, one);
    const [one, other] = [state.branches.leaf("one")!, state.branches.leaf("other")!];
    assert.deepEqual([minRuntimeMs(one, one, preemptions), minRuntimeMs(one, other, preemptions)], [ms, ms]);
    const { notBeforeMs } = afterPreemption(null, { preemptions: preemptions - 1, why: "", nowMs: 0 });
    if (preemptions > 0) assert.equal(notBeforeMs, ms);
    state.setQueue("all", { ...queues[0]!, policy: { ...DEFAULT_POLICY, minRuntimeReclaimMs: 0 } });
    const [anew, preemptor] = [state.branches.leaf("one")!, state.branches.leaf("other")!];
    assert.equal(minRuntimeMs(anew, preemptor, preemptions), 0, "a minimum of 0 that is set counts");
  });
}
