import fc from "fast-check";
import { DEFAULT_POLICY, type QueuePolicy } from "../../../../src/core/plan/model/queue-policy.ts";
import type { FlavorQuota, PlanQueue } from "../../../../src/core/plan/model/snapshot.ts";
import type { Branch } from "../../../../src/core/plan/usage/branches.ts";
import { QuotaState } from "../../../../src/core/plan/usage/quota-state.ts";

/** Two flavors of one resource, and another resource. */
export const POOLS = { "gpu/h100": "gpu", "gpu/a100": "gpu", "net/ib": "net" } as const;
export const POOL_NAMES = Object.keys(POOLS) as readonly (keyof typeof POOLS)[];

const maybe = (max: number) => fc.option(fc.nat(max), { freq: 2 });

const someQuota = (pool: keyof typeof POOLS) =>
  fc.record({ nominal: fc.nat(8), borrow: maybe(6), lend: maybe(6) }).map(({ nominal, borrow, lend }): FlavorQuota => {
    const limits = { ...(borrow === null ? {} : { borrowingLimit: borrow }) };
    return {
      flavor: pool,
      resource: POOLS[pool],
      nominal,
      ...limits,
      ...(lend === null ? {} : { lendingLimit: lend }),
    };
  });

const somePolicy: fc.Arbitrary<QueuePolicy> = fc
  .record({
    weight: fc.constantFrom(0, 0.5, 1, 1, 2, 3),
    withinQueue: fc.constantFrom("NEVER" as const, "LOWER_PRIORITY" as const, "LOWER_OR_NEWER_EQUAL_PRIORITY" as const),
    reclaimWithinTree: fc.constantFrom("NEVER" as const, "LOWER_PRIORITY" as const, "ANY" as const, "ANY" as const),
    borrowWithin: fc.record({
      policy: fc.constantFrom("NEVER" as const, "LOWER_PRIORITY" as const),
      maxPriority: maybe(3),
    }),
  })
  .map((policy) => ({ ...DEFAULT_POLICY, ...policy }));

/** Up to seven queues in one or two trees. Queue `q0` is a root. Each has a quota for some of the pools. */
export const someQueues: fc.Arbitrary<readonly PlanQueue[]> = fc
  .array(
    fc.record({
      above: fc.nat(6),
      policy: somePolicy,
      quotas: fc.tuple(...POOL_NAMES.map((pool) => fc.option(someQuota(pool), { freq: 9 }))),
    }),
    { minLength: 2, maxLength: 7 },
  )
  .map((list) =>
    list.map(({ above, policy, quotas }, at) => ({
      name: `q${at}`,
      parent: at === 0 || above === 6 ? null : `q${above % at}`,
      strategy: "BEST_EFFORT_FIFO" as const,
      policy,
      quotas: quotas.filter((quota) => quota !== null),
    })),
  );

export type Use = { readonly queue: string; readonly pool: string; readonly amount: number };

/** Some use, also beyond quotas: an admin may lower them. */
export const someUses: fc.Arbitrary<readonly Use[]> = fc.array(
  fc.record({
    queue: fc.nat(6).map((at) => `q${at}`),
    pool: fc.constantFrom(...POOL_NAMES),
    amount: fc.integer({ min: 1, max: 6 }),
  }),
  { maxLength: 8 },
);

/** A state of these queues without use, and without limits but theirs. */
export function emptyState(queues: readonly PlanQueue[]): QuotaState {
  const state = new QuotaState();
  for (const queue of queues) state.setQueue(queue.name, queue);
  for (const pool of POOL_NAMES) {
    state.setPool(pool, { pool, quota: null, projectDefault: null, namespaceDefault: null });
  }
  return state;
}

export function accountOf(state: QuotaState, queue: string) {
  return state.account(queue, "project", "namespace");
}

/** Charges the uses of queues that have a quota for the pool, and returns these uses. */
export function chargeAll(state: QuotaState, uses: readonly Use[]): readonly Use[] {
  const known = uses.filter(({ queue, pool }) => state.branches.leaf(queue)?.pools.has(pool) === true);
  for (const { queue, pool, amount } of known) state.charge(accountOf(state, queue), pool, amount);
  return known;
}

/** Every branch of every tree. */
export function allBranches(state: QuotaState): readonly Branch[] {
  const names = [...state.queues.keys()];
  const found = names.flatMap((name) => [state.branches.of(name), state.branches.leaf(name)]);
  return [...new Set(found.filter((branch) => branch !== null))];
}

/** The use of every branch in every pool. */
export function useTable(state: QuotaState): readonly (readonly [string, number, string, number])[] {
  return allBranches(state).flatMap((branch) =>
    [...branch.pools.values()].map((pool) => [branch.name, branch.height, pool.pool, state.usedIn(pool)] as const),
  );
}
