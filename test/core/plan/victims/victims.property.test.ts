import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { PlanQueue } from "../../../../src/core/plan/model/snapshot.ts";
import { isWithinQuota } from "../../../../src/core/plan/usage/branch-use.ts";
import { someQueues, useTable } from "../usage/tree-world.ts";
import {
  areLegalIn,
  fitsBeside,
  neededOf,
  someStrategies,
  someWorld,
  stateWith,
  victimsIn,
  type World,
  without,
} from "./gang-world.ts";

const RUNS = { numRuns: 1000 };
const classic = someWorld(fc.constant(null));
const fair = someWorld(someStrategies);

/** The victims of a world, and the world that remains. Null: the preemptor fits without any, or never. */
function solve(world: World) {
  const state = stateWith(world, world.gangs);
  const needed = neededOf(world, state);
  if (needed.size === 0) return null;
  const victims = victimsIn(world, state);
  return victims.length === 0 ? null : { state, needed, victims, rest: without(world.gangs, victims) };
}

/** Checks a law on every world with victims, and that there are some. */
function always(worlds: fc.Arbitrary<World>, law: (world: World, of: NonNullable<ReturnType<typeof solve>>) => void) {
  let solved = 0;
  const property = fc.property(worlds, (world) => {
    const of = solve(world);
    if (of === null) return;
    solved += 1;
    law(world, of);
  });
  fc.assert(property, RUNS);
  assert.ok(solved > 0, "no world had victims");
}

/** True if the preemptor's queue uses more than its own quota of a wanted pool once the preemptor runs too. */
function takerBorrows(world: World, running: World["gangs"]): boolean {
  const { queue, requested } = world.taker;
  const gang = { uid: "taker", queue, priority: 0, createTimeMs: 0, admitTimeMs: 0, evicted: false, uses: requested };
  const state = stateWith(world, [...running, gang]);
  return !isWithinQuota(state, state.branches.leaf(queue)!, requested.keys());
}

/** True if the preemptor's queue borrows only while more gangs run: classic preemption spares nobody at that price. */
function borrowsOnlyWith(world: World, { rest, more }: Record<"rest" | "more", World["gangs"]>): boolean {
  return !takerBorrows(world, rest) && takerBorrows(world, more);
}

for (const [name, worlds] of Object.entries({ classic, fair })) {
  test(`${name}: a search leaves the state as it was`, () => {
    const property = fc.property(worlds, (world) => {
      const state = stateWith(world, world.gangs);
      const { mark } = state;
      const before = useTable(state);
      victimsIn(world, state);
      assert.equal(state.mark, mark);
      assert.deepEqual(useTable(state), before);
    });
    fc.assert(property, RUNS);
  });

  test(`${name}: with its victims gone, the preemptor fits`, () => {
    always(worlds, (world, { rest }) => assert.ok(fitsBeside(world, rest)));
  });

  test(`${name}: every victim is needed, for the preemptor to fit or for the others to be legal victims`, () => {
    always(worlds, (world, { state, victims, rest }) => {
      for (const victim of victims) {
        const more = [...rest, world.gangs.find(({ uid }) => uid === victim.gang.uid)!];
        const others = victims.filter((one) => one !== victim);
        const isNeeded =
          name === "classic" ? borrowsOnlyWith(world, { rest, more }) : !areLegalIn(world, state, others);
        assert.ok(isNeeded || !fitsBeside(world, more), `${victim.gang.uid} need not go`);
      }
    });
  });

  test(`${name}: a victim uses a pool that is needed, is not spared, and is one that the policy allows`, () => {
    always(worlds, (world, { needed, victims, state }) => {
      const { taker: preemptor } = world;
      const { policy } = state.branches.leaf(preemptor.queue)!;
      for (const { gang, reason } of victims) {
        assert.ok([...needed].some((pool) => gang.uses.has(pool)));
        assert.ok(!world.spared.has(gang.uid));
        const own = gang.account.queue === preemptor.queue;
        assert.equal(own, reason === "InClusterQueue");
        const rule = own ? policy.withinQueue : policy.reclaimWithinTree;
        const newer = gang.priority === preemptor.priority && gang.createTimeMs > preemptor.createTimeMs;
        const lower = gang.priority < preemptor.priority;
        assert.ok(rule === "ANY" || (rule !== "NEVER" && (lower || (rule !== "LOWER_PRIORITY" && newer))));
        if (reason === "InCohortReclaimWhileBorrowing") {
          assert.ok(policy.borrowWithin.policy === "LOWER_PRIORITY" && lower);
          assert.ok(gang.priority <= (policy.borrowWithin.maxPriority ?? Number.POSITIVE_INFINITY));
        }
      }
    });
  });
}

/** Queues that take only from themselves, so that the rules let every allowed gang go. */
const lonelyQueues: fc.Arbitrary<readonly PlanQueue[]> = someQueues.map((queues) =>
  queues.map((queue) => ({
    ...queue,
    policy: { ...queue.policy!, withinQueue: "LOWER_PRIORITY" as const, reclaimWithinTree: "NEVER" as const },
  })),
);

for (const [name, strategies] of Object.entries({ classic: fc.constant(null), fair: someStrategies })) {
  test(`${name}: within a queue victims are found if and only if brute force finds some`, () => {
    let found = 0;
    const property = fc.property(someWorld(strategies, lonelyQueues), (world) => {
      const state = stateWith(world, world.gangs);
      const needed = neededOf(world, state);
      if (needed.size === 0) return;
      const allowed = world.gangs.filter(({ uid, queue, priority, uses }) => {
        const isLower = queue === world.taker.queue && priority < world.taker.priority;
        return isLower && !world.spared.has(uid) && [...needed].some((pool) => uses.has(pool));
      });
      const victims = victimsIn(world, state);
      const sets = subsets(allowed).filter((gone) =>
        fitsBeside(
          world,
          world.gangs.filter((one) => !gone.includes(one)),
        ),
      );
      assert.equal(victims.length > 0, sets.length > 0);
      if (victims.length === 0) return;
      found += 1;
      const uids = new Set(victims.map(({ gang }) => gang.uid));
      assert.ok(!sets.some((gone) => gone.length < uids.size && gone.every(({ uid }) => uids.has(uid))));
    });
    fc.assert(property, RUNS);
    assert.ok(found > 0);
  });
}

function subsets<T>(list: readonly T[]): readonly (readonly T[])[] {
  const [first, ...rest] = list;
  if (first === undefined) return [[]];
  const without = subsets(rest);
  return [...without, ...without.map((set) => [first, ...set])];
}
