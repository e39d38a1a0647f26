import { getOrCreate } from "../../runtime/get-or-create.ts";
import { AMOUNT_MAX } from "./allocations.ts";
import type { Limits, PoolLimit, QueueLimit } from "./counters.ts";

/** Default maximum numbers of pools, tokens and waiters in a domain. */
export const POOLS_MAX = 10_000;
export const TOKENS_MAX = 1_000_000;
export const WAITERS_MAX = 10_000;

/** Limits by name. An unknown name has limit 0. */
export type LimitBook = {
  readonly pool: (pool: string) => PoolLimit;
  readonly queue: (queue: string, pool: string) => QueueLimit;
};

/** The limits without freezes, which end some time. */
export function thawedBook({ pools, queues }: Pick<Limits, "pools" | "queues">): LimitBook {
  return limitBook({
    pools: pools.map(({ freeze: _, ...limit }) => limit),
    queues: queues.map(({ freeze: _, ...limit }) => limit),
  });
}

export function limitBook(limits: Pick<Limits, "pools" | "queues">): LimitBook {
  const pools = new Map(limits.pools.map((limit) => [limit.pool, limit]));
  const queues = new Map<string, Map<string, QueueLimit>>();
  for (const limit of limits.queues) {
    getOrCreate(queues, limit.pool, () => new Map()).set(limit.queue, limit);
  }
  return {
    pool: (pool) => pools.get(pool) ?? { pool, quota: 0, projectDefault: 0, namespaceDefault: 0 },
    queue: (queue, pool) => queues.get(pool)?.get(queue) ?? { queue, pool, parent: null, ceiling: 0, guarantee: 0 },
  };
}

/** Returns the tighter of two limits. Null: no limit. */
export function tighter(one: number | null, other: number | null): number {
  return Math.min(one ?? AMOUNT_MAX, other ?? AMOUNT_MAX);
}
