import fc from "fast-check";
import { FAIR_SHARING_STRATEGIES, type FairSharingStrategy } from "../../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../../src/core/plan/model/snapshot.ts";
import { available } from "../../../../src/core/plan/usage/branch-use.ts";
import type { QuotaState } from "../../../../src/core/plan/usage/quota-state.ts";
import type { Preemptor, RunningGang, Victim, VictimSearch } from "../../../../src/core/plan/victims/running-gang.ts";
import { areLegal, victimsFor } from "../../../../src/core/plan/victims/victims.ts";
import { accountOf, emptyState, POOL_NAMES, someQueues } from "../usage/tree-world.ts";

/** A running gang with the name of its queue. */
export type WorldGang = Omit<RunningGang, "account"> & { readonly queue: string };

export type WorldTaker = Omit<Preemptor, "account" | "needed"> & { readonly queue: string };

export type World = {
  readonly queues: readonly PlanQueue[];
  readonly gangs: readonly WorldGang[];
  readonly taker: WorldTaker;
  /** The gangs that may not be taken. */
  readonly spared: ReadonlySet<string>;
};

export const oneStrategy = fc.constantFrom(...FAIR_SHARING_STRATEGIES.map((one) => [one]));
export const someStrategies: fc.Arbitrary<readonly FairSharingStrategy[]> = fc.oneof(
  oneStrategy,
  fc.constant(FAIR_SHARING_STRATEGIES),
);

export const someAmounts = fc
  .tuple(fc.constantFrom(...POOL_NAMES), fc.integer({ min: 1, max: 5 }), fc.option(fc.constantFrom(...POOL_NAMES)))
  .map(([pool, amount, other]) => new Map([[pool, amount], ...(other === null ? [] : [[other, 2] as const])]));

const someGang = fc.record({
  queue: fc.nat(),
  priority: fc.nat(3),
  createTimeMs: fc.nat(3),
  admitTimeMs: fc.nat(3),
  evicted: fc.nat(7).map((at) => at === 0),
  uses: someAmounts,
});

/** Leaves out the gangs and the wants of queues that have no quota for a pool: they are never admitted. */
export const someWorld = (
  strategies: fc.Arbitrary<readonly FairSharingStrategy[] | null>,
  queues: fc.Arbitrary<readonly PlanQueue[]> = someQueues,
): fc.Arbitrary<World> =>
  fc
    .record({
      queues,
      fairSharing: strategies,
      gangs: fc.array(someGang, { minLength: 2, maxLength: 9 }),
      taker: someGang,
      spared: fc.subarray(
        Array.from({ length: 9 }, (_, at) => `gang-${at}`),
        { maxLength: 2 },
      ),
    })
    .map(({ fairSharing, gangs, taker: preemptor, spared, queues: drawn }) => {
      const shared = drawn.map((queue) => ({ ...queue, policy: { ...queue.policy!, fairSharing } }));
      const state = emptyState(shared);
      const inQueue = (at: number) => ({ queue: `q${at % drawn.length}` });
      const has = ({ queue, uses }: Pick<WorldGang, "queue" | "uses">) =>
        [...uses.keys()].every((pool) => state.branches.leaf(queue)?.pools.has(pool) === true);
      const named = gangs.map((gang, at) => ({ ...gang, ...inQueue(gang.queue), uid: `gang-${at}` })).filter(has);
      const { uses: requested, priority, createTimeMs } = preemptor;
      const waiting = { ...inQueue(preemptor.queue), priority: priority + 1, createTimeMs, requested };
      return { queues: shared, gangs: named, taker: waiting, spared: new Set(spared) };
    });

/** A state in which these gangs run. */
export function stateWith(world: World, running: readonly WorldGang[]): QuotaState {
  const state = emptyState(world.queues);
  for (const { queue, uses } of running) {
    for (const [pool, amount] of uses) state.charge(accountOf(state, queue), pool, amount);
  }
  return state;
}

/** True if the preemptor gets all that it requests beside the gangs that run. */
export function fitsBeside(world: World, running: readonly WorldGang[]): boolean {
  const { taker: preemptor } = world;
  const state = stateWith(world, running);
  const leaf = state.branches.leaf(preemptor.queue);
  return leaf !== null && [...preemptor.requested].every(([pool, amount]) => amount <= available(state, leaf, pool));
}

/** The pools of which the preemptor does not get enough. */
export function neededOf({ taker: preemptor }: World, state: QuotaState): ReadonlySet<string> {
  const leaf = state.branches.leaf(preemptor.queue);
  const lacking = [...preemptor.requested].filter(
    ([pool, amount]) => leaf === null || amount > available(state, leaf, pool),
  );
  return new Set(lacking.map(([pool]) => pool));
}

export function victimsIn(world: World, state: QuotaState): readonly Victim[] {
  return victimsFor(searchIn(world, state), takerIn(world, state));
}

/** True if these victims can be taken one after another, each allowed at that moment. */
export function areLegalIn(world: World, state: QuotaState, victims: readonly Victim[]): boolean {
  return areLegal(searchIn(world, state), takerIn(world, state), victims);
}

function searchIn(world: World, state: QuotaState): VictimSearch {
  const running = world.gangs.map(({ queue, ...gang }) => ({ ...gang, account: accountOf(state, queue) }));
  return {
    quota: state,
    gangsOf: (queue) => running.filter(({ account }) => account.queue === queue),
    mayTake: ({ uid }) => !world.spared.has(uid),
  };
}

function takerIn(world: World, state: QuotaState): Preemptor {
  const { queue, ...preemptor } = world.taker;
  return { ...preemptor, account: accountOf(state, queue), needed: neededOf(world, state) };
}

/** The gangs that remain once these victims are gone. */
export function without(gangs: readonly WorldGang[], victims: readonly Victim[]): readonly WorldGang[] {
  const gone = new Set(victims.map(({ gang }) => gang.uid));
  return gangs.filter(({ uid }) => !gone.has(uid));
}
