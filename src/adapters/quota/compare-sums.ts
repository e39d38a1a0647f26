import type { Scope } from "../../core/quota/counters.ts";
import { scopeKey } from "../../core/quota/scopes.ts";

export type Sum = { readonly scope: Scope; readonly used: number };
export type SumDifference = { readonly scope: Scope; readonly counters: number; readonly ledger: number };

/** Scopes that counters and ledger do not agree on; a scope that one of them does not name has the sum 0. */
export function differingSums(of: {
  readonly counters: readonly Sum[];
  readonly ledger: readonly Sum[];
}): readonly SumDifference[] {
  const counters = new Map(of.counters.map((sum) => [scopeKey(sum.scope), sum]));
  const ledger = new Map(of.ledger.map((sum) => [scopeKey(sum.scope), sum]));
  const scopes = new Map([...ledger, ...counters].map(([key, { scope }]) => [key, scope]));
  return [...scopes].flatMap(([key, scope]) => {
    const pair = { scope, counters: counters.get(key)?.used ?? 0, ledger: ledger.get(key)?.used ?? 0 };
    return pair.counters === pair.ledger ? [] : [pair];
  });
}
