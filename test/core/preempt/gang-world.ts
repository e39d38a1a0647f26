import fc from "fast-check";
import type { RunningGang, Taker, Victim } from "../../../src/core/plan/preempt/running-gang.ts";
import { victimsFor } from "../../../src/core/plan/preempt/victims.ts";
import { FAIR_SHARING_STRATEGIES, type FairSharingStrategy } from "../../../src/core/plan/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/snapshot.ts";
import { available } from "../../../src/core/plan/state/branch-use.ts";
import type { QuotaState } from "../../../src/core/plan/state/quota-state.ts";
import { accountOf, emptyState, POOL_NAMES, someQueues } from "./tree-world.ts";

/** A running gang with the name of its queue. */
export type WorldGang = Omit<RunningGang, "account"> & { readonly queue: string };

export type WorldTaker = Omit<Taker, "account" | "needed"> & { readonly queue: string };

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
    .map(({ fairSharing, gangs, taker, spared, queues: drawn }) => {
      const shared = drawn.map((queue) => ({ ...queue, policy: { ...queue.policy!, fairSharing } }));
      const state = emptyState(shared);
      const inQueue = (at: number) => ({ queue: `q${at % drawn.length}` });
      const has = ({ queue, uses }: Pick<WorldGang, "queue" | "uses">) =>
        [...uses.keys()].every((pool) => state.branches.leaf(queue)?.pools.has(pool) === true);
      const named = gangs.map((gang, at) => ({ ...gang, ...inQueue(gang.queue), uid: `gang-${at}` })).filter(has);
      const { uses: wants, priority, createTimeMs } = taker;
      const waiting = { ...inQueue(taker.queue), priority: priority + 1, createTimeMs, wants };
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

/** True if the taker gets all that it wants beside the gangs that run. */
export function fitsBeside(world: World, running: readonly WorldGang[]): boolean {
  const { taker } = world;
  const state = stateWith(world, running);
  const leaf = state.branches.leaf(taker.queue);
  return leaf !== null && [...taker.wants].every(([pool, amount]) => amount <= available(state, leaf, pool));
}

/** The pools of which the taker does not get enough. */
export function neededOf({ taker }: World, state: QuotaState): ReadonlySet<string> {
  const leaf = state.branches.leaf(taker.queue);
  const lacking = [...taker.wants].filter(([pool, amount]) => leaf === null || amount > available(state, leaf, pool));
  return new Set(lacking.map(([pool]) => pool));
}

export function victimsIn(world: World, state: QuotaState): readonly Victim[] {
  const running = world.gangs.map(({ queue, ...gang }) => ({ ...gang, account: accountOf(state, queue) }));
  const { queue: name, ...taker } = world.taker;
  return victimsFor(
    {
      quota: state,
      gangsOf: (queue) => running.filter(({ account }) => account.queue === queue),
      mayTake: ({ uid }) => !world.spared.has(uid),
    },
    { ...taker, account: accountOf(state, name), needed: neededOf(world, state) },
  );
}

/** The gangs that remain once these victims are gone. */
export function without(gangs: readonly WorldGang[], victims: readonly Victim[]): readonly WorldGang[] {
  const gone = new Set(victims.map(({ gang }) => gang.uid));
  return gangs.filter(({ uid }) => !gone.has(uid));
}
