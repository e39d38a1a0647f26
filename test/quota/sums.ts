import type { Counters } from "../../src/core/quota/counters.ts";
import { scopeKey } from "../../src/core/quota/scopes.ts";

/** Sums in an order of their own, to be compared. */
export function canonicalSums(sums: Awaited<ReturnType<Counters["used"]>>): Readonly<Record<string, number>> {
  return Object.fromEntries(sums.map(({ scope, used }) => [scopeKey(scope), used] as const).sort(byKey));
}

function byKey([a]: readonly [string, number], [b]: readonly [string, number]): number {
  return a < b ? -1 : 1;
}
