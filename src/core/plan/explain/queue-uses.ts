import type { PlanQueue } from "../model/snapshot.ts";
import { rootOf } from "../usage/branches.ts";
import { QuotaState } from "../usage/quota-state.ts";
import { shareOf, shownShare } from "../usage/shares.ts";
import { borrowedBy, lentInTree } from "../usage/tree-use.ts";

/** The use that the ledger counts for a queue: that of its own allocations. */
export type QueueSum = { readonly pool: string; readonly queue: string; readonly used: number };

/** The use of a queue by flavor, as admins see it. Omits flavors of which it is nothing. */
export type QueueUse = {
  /** Also what queues below it use beyond their guarantees. */
  readonly used: Readonly<Record<string, number>>;
  /** How much of `used` is beyond its own quota and what the queues below it lend to it. */
  readonly borrowed: Readonly<Record<string, number>>;
  /** How much of its own quota other queues use. */
  readonly lent: Readonly<Record<string, number>>;
  /** As `shownShare` says. */
  readonly share: number;
};

export const NO_USE: QueueUse = { used: {}, borrowed: {}, lent: {}, share: 0 };

/** The use of each queue, as the planner counts it. */
export function queueUses(queues: readonly PlanQueue[], sums: readonly QueueSum[]): ReadonlyMap<string, QueueUse> {
  const state = new QuotaState();
  for (const queue of queues) state.setQueue(queue.name, queue);
  for (const { pool, queue, used } of sums) state.setSum({ kind: "queue", pool, queue }, used);
  const lent = lentOf(state);
  return new Map(
    queues.map(({ name }) => {
      const branch = state.branches.of(name);
      if (branch === null) return [name, NO_USE];
      const share = shownShare(shareOf(state, branch));
      const used = new Map([...branch.pools.values()].map((pool) => [pool.pool, state.usedIn(pool)]));
      // Tokens may be left of a flavor of which the queue has no quota any more.
      for (const sum of sums) if (sum.queue === name && !used.has(sum.pool)) used.set(sum.pool, sum.used);
      const shown = { used: someOf(used), borrowed: someOf(borrowedBy(state, branch)), lent: someOf(lent.get(name)) };
      return [name, { ...shown, share }];
    }),
  );
}

/** What the queues have lent, by queue. */
function lentOf(state: QuotaState): ReadonlyMap<string, ReadonlyMap<string, number>> {
  const branches = [...state.queues.keys()].flatMap((name) => state.branches.of(name) ?? []);
  const roots = new Set(branches.map(rootOf));
  return new Map([...roots].flatMap((root) => lentInTree(state, root).map(({ leaf, lent }) => [leaf.name, lent])));
}

function someOf(amounts: ReadonlyMap<string, number> = new Map()): Readonly<Record<string, number>> {
  return Object.fromEntries([...amounts].filter(([, amount]) => amount > 0));
}
