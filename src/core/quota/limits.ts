import type { Limits, PoolLimit, QueueLimit } from "./counters.ts";
import { AMOUNT_MAX } from "./lines.ts";

/** How many pools a domain has, what it holds and who waits in it, at most, where nobody has said otherwise. */
export const POOLS_MAX = 10_000;
export const TOKENS_MAX = 1_000_000;
export const WAITERS_MAX = 10_000;

/** Limits by name. Who is not named has the limit 0. */
export type LimitBook = {
  readonly pool: (pool: string) => PoolLimit;
  readonly queue: (queue: string, pool: string) => QueueLimit;
};

export function limitBook(limits: Pick<Limits, "pools" | "queues">): LimitBook {
  const pools = new Map(limits.pools.map((limit) => [limit.pool, limit]));
  const queues = new Map<string, Map<string, QueueLimit>>();
  for (const limit of limits.queues) {
    const ofPool = queues.get(limit.pool) ?? new Map<string, QueueLimit>();
    queues.set(limit.pool, ofPool.set(limit.queue, limit));
  }
  return {
    pool: (pool) => pools.get(pool) ?? { pool, quota: 0, projectDefault: 0, namespaceDefault: 0 },
    queue: (queue, pool) => queues.get(pool)?.get(queue) ?? { queue, pool, parent: null, ceiling: 0, guarantee: 0 },
  };
}

/** The tighter of two limits, either of which may be absent. */
export function tighter(one: number | null, other: number | null): number {
  return Math.min(one ?? AMOUNT_MAX, other ?? AMOUNT_MAX);
}
