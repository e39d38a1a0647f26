import type { Counters } from "../../core/quota/counters.ts";

/** How many there are of each pool. */
export function countByPool(lines: Iterable<{ readonly pool: string }>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { pool } of lines) counts.set(pool, (counts.get(pool) ?? 0) + 1);
  return counts;
}

/** What the counters say is used of each pool. */
export async function usedByPool(counters: Pick<Counters, "used">): Promise<ReadonlyMap<string, number>> {
  const sums = await counters.used();
  return new Map(sums.flatMap(({ scope, used }) => (scope.kind === "pool" ? [[scope.pool, used] as const] : [])));
}
