import { limitsOfQueues } from "../../src/core/quota/limits.ts";

export type Ceiling = { readonly queue: string; readonly pool: string; readonly limit: number };

/** Limits of queues that stand alone. */
export function ceilings(list: readonly Ceiling[]) {
  return limitsOfQueues(list.map(({ queue, pool, limit }) => ({ queue, pool, nominal: limit })));
}
