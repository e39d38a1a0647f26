import { AMOUNT_MAX } from "../../src/core/quota/allocations.ts";
import type { Limits } from "../../src/core/quota/counters.ts";
import { TOKENS_MAX, WAITERS_MAX } from "../../src/core/quota/limits.ts";

export type Ceiling = { readonly queue: string; readonly pool: string; readonly limit: number };

/** Limits of queues without parents. Each queue may use its nominal quota, and the pools have no quota of their own. */
export function ceilings(list: readonly Ceiling[]): Limits {
  const pools = [...new Set(list.map(({ pool }) => pool))];
  return {
    version: 0,
    pools: pools.map((pool) => ({ pool, quota: null, projectDefault: null, namespaceDefault: null })),
    queues: list.map(({ queue, pool, limit }) => ({
      queue,
      pool,
      parent: null,
      ceiling: Math.min(limit, AMOUNT_MAX),
      guarantee: limit,
    })),
    tokensMax: TOKENS_MAX,
    waitersMax: WAITERS_MAX,
  };
}
