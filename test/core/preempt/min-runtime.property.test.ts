import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { membersToTake, minRuntimeMs, protectedUntilMs } from "../../../src/core/plan/preempt/min-runtime.ts";
import type { PlanQueue } from "../../../src/core/plan/snapshot.ts";
import { emptyState, someQueues } from "./tree-world.ts";

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

test("the minimum run time is the nearest one: for reclaim from the highest queue that the taker is not below", () => {
  let reclaimed = 0;
  const property = fc.property(worlds, ({ queues, victim, taker }) => {
    const state = emptyState(queues);
    const found = minRuntimeMs(state.branches.leaf(victim)!, state.branches.leaf(taker)!);
    const up = path(queues, victim);
    if (victim === taker) {
      assert.equal(found, nearest(up.map(({ policy }) => policy!.minRuntimePreemptMs)));
      return;
    }
    const takers = new Set(path(queues, taker).map(({ name }) => name));
    const apart = up.filter(({ name }) => !takers.has(name));
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
