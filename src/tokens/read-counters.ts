import type { Counters, Scope } from "../core/quota/counters.ts";
import type { BothSums } from "../core/quota/ledger.ts";
import { scopeKey } from "../core/quota/scopes.ts";
import { UnavailableError } from "../runtime/unavailable-error.ts";
import type { QuotaDomain } from "./domain/domain.ts";

const HELD_PAGE = 500;

/** Yields everything that the counters hold. A token that is held during the whole read comes at least once. */
export async function* allHeld(domain: QuotaDomain) {
  for (let after: string | null = null; ; ) {
    const page: Awaited<ReturnType<QuotaDomain["counters"]["held"]>> = await domain.counters.held(after, HELD_PAGE);
    yield* page.tokens;
    if (page.next === null) return;
    after = page.next;
  }
}

/** Counts the allocations of each pool. */
export function countByPool(allocations: Iterable<{ readonly pool: string }>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { pool } of allocations) counts.set(pool, (counts.get(pool) ?? 0) + 1);
  return counts;
}

/** Reads the use of each pool from the counters. */
export async function usedByPool(counters: Pick<Counters, "used">): Promise<ReadonlyMap<string, number>> {
  const sums = await counters.used();
  return new Map(sums.flatMap(({ scope, used }) => (scope.kind === "pool" ? [[scope.pool, used] as const] : [])));
}

export type SumDifference = { readonly scope: Scope; readonly counters: number; readonly ledger: number };

/**
 * Compares the use of every scope in the counters with the use that the ledger says they must show, at one moment.
 * Grants and releases under way are therefore no difference. Throws `UnavailableError` if the counters are closed.
 */
export async function differingSums(
  { epochs, counters, ledger }: Pick<QuotaDomain, "epochs" | "counters" | "ledger">,
  epoch: number,
): Promise<readonly SumDifference[]> {
  const both = await ledger.readBoth((tokens) => counters.moment(epoch, tokens));
  if (both === "closed") {
    epochs.countersClosed(epoch);
    throw new UnavailableError("the counters are being rebuilt");
  }
  const differences = differencesOf(both);
  return both.sameLimits ? differences : differences.filter(({ scope }) => scope.kind !== "queue");
}

/** A scope that one side does not name has the sum 0 there. */
function differencesOf(of: Omit<BothSums, "sameLimits">): readonly SumDifference[] {
  const counters = new Map(of.counters.map((sum) => [scopeKey(sum.scope), sum]));
  const ledger = new Map(of.ledger.map((sum) => [scopeKey(sum.scope), sum]));
  const scopes = new Map([...ledger, ...counters].map(([key, { scope }]) => [key, scope]));
  return [...scopes].flatMap(([key, scope]) => {
    const pair = { scope, counters: counters.get(key)?.used ?? 0, ledger: ledger.get(key)?.used ?? 0 };
    return pair.counters === pair.ledger ? [] : [pair];
  });
}
