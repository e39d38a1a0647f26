import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { FleetState } from "../../../../src/core/plan/fleet-state.ts";
import { classesInOrder } from "../../../../src/core/plan/queues/class-walk.ts";
import { compareAged, headOf } from "../../../../src/core/plan/queues/order.ts";
import type { GangClass, GangRecord } from "../../../../src/core/plan/queues/records.ts";
import { Truth } from "../truth.ts";

const HISTORIES = 30;
const STEPS = 25;

test("the gang classes of every queue stay in the order of their first gangs while gangs come and go", () => {
  let moved = 0;
  for (let seed = 1; seed <= HISTORIES; seed++) {
    const truth = new Truth(seed, { alike: false });
    const state = new FleetState();
    for (const change of truth.load()) state.apply(change);
    for (let step = 0; step < STEPS; step++) {
      const before = orders(state, truth.nowMs);
      for (const change of truth.change()) state.apply(change);
      state.round(truth.nowMs, { admissionsMax: 3 });
      const after = orders(state, truth.nowMs);
      for (const { name, classes } of state.parts.queues.byName) {
        const sorted = [...classes.values()].sort((a, b) => compareAged(firstOf(a), firstOf(b), truth.nowMs));
        assert.deepEqual(
          after.get(name),
          sorted.map(({ key }) => key),
          `seed ${seed}, step ${step}, ${name}`,
        );
      }
      if (!isDeepStrictEqual(before, after)) moved += 1;
    }
  }
  assert.ok(moved > HISTORIES * 5, `${moved} steps changed an order`);
});

/** The gang classes of all queues in their order, which each queue keeps from now on. */
function orders({ parts }: FleetState, nowMs: number): ReadonlyMap<string, readonly string[]> {
  return new Map(
    parts.queues.byName.map((gangQueue) => [gangQueue.name, classesInOrder(gangQueue, nowMs).map(({ key }) => key)]),
  );
}

function firstOf(gangClass: GangClass): GangRecord {
  return headOf(gangClass) as GangRecord;
}
