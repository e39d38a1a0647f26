import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ownCandidates, Reaches } from "../../../../src/core/plan/victims/reach.ts";
import { accountOf } from "../usage/tree-world.ts";
import { neededOf, someStrategies, someWorld, stateWith, victimsIn } from "./gang-world.ts";

/** Counts what the worlds have met, so that no law holds for want of cases. */
const met = { nobody: 0, ownAlone: 0, others: 0, notAll: 0 };

for (const [name, strategies] of [
  ["fairly", someStrategies],
  ["classically", fc.constant(null)],
] as const) {
  test(`in trees that share ${name}, no search takes what a preemptor cannot reach`, () => {
    fc.assert(
      fc.property(someWorld(strategies), (world) => {
        const state = stateWith(world, world.gangs);
        const running = world.gangs.map(({ queue, ...gang }) => ({ ...gang, account: accountOf(state, queue) }));
        const { queue, ...of } = world.taker;
        const search = {
          quota: state,
          gangsOf: (name: string) => running.filter(({ account }) => account.queue === name),
          mayTake: ({ uid }: { readonly uid: string }) => !world.spared.has(uid),
        };
        const preemptor = { ...of, account: accountOf(state, queue), needed: neededOf(world, state) };
        fc.pre(preemptor.needed.size > 0);
        const own = ownCandidates(search, preemptor);
        const before = state.useVersion;
        const reached = new Set(new Reaches(search).reached(preemptor, own).map(({ uid }) => uid));
        assert.equal(state.useVersion, before);
        const victims = victimsIn(world, state);
        for (const { gang } of victims) assert.ok(reached.has(gang.uid), `${gang.uid} of ${gang.account.queue}`);
        if (reached.size === 0) met.nobody += 1;
        if (reached.size < running.length) met.notAll += 1;
        const isOwn = ({ gang }: (typeof victims)[number]) => gang.account.queue === queue;
        if (victims.length > 0) met[victims.every(isOwn) ? "ownAlone" : "others"] += 1;
      }),
      { numRuns: 1500 },
    );
  });
}

test("the worlds met preemptors that reach nobody, their own queue alone, other queues, and not all gangs", () => {
  for (const [name, count] of Object.entries(met)) assert.ok(count > 5, `${count} ${name}`);
});
