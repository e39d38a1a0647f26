import type { Ledger, LedgerOf } from "../../src/core/quota/ledger.ts";

/** The ledger of a domain in a store, at a moment. `nowMs` omitted: what is asked records no time. */
export function ledgerAt(store: { readonly ledgerOf: LedgerOf }, nowMs = 0, domain = "default"): Ledger {
  return store.ledgerOf(domain, { nowMs: () => nowMs });
}
