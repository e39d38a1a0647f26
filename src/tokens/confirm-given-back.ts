import type { AllocationRef, Rest, TurnOver } from "../core/quota/counters.ts";
import type { QuotaDomain } from "./domain/domain.ts";

/** Allocations of one read of the ledger, and reads of one call. The next call confirms the others. */
const PAGE = 500;
const PAGES_MAX = 20;

/** One kind of changes on the way from the ledger to the counters: whole tokens, parts, or what heirs got. */
type GivenBack<Item> = {
  /** Reads the next allocations that the counters do not know. */
  readonly read: (limit: number) => Promise<readonly Item[]>;
  readonly tellCounters: (allocations: readonly Item[]) => Promise<"closed" | readonly string[]>;
  /** Tells the ledger that the counters know these allocations. */
  readonly tellLedger: (allocations: readonly Item[]) => Promise<void>;
};

/**
 * Turns over in the counters what the ledger has turned over to heirs, then frees everything that it has released,
 * whole tokens and parts, and tells the ledger so. Returns the number of allocations.
 */
export async function confirmGivenBack(domain: QuotaDomain, epoch: number): Promise<number> {
  const { ledger, counters } = domain;
  const turnedOver = await confirm<TurnOver>(domain, epoch, {
    read: ledger.untoldTurnOvers,
    tellCounters: (turns) => counters.turnOver(epoch, turns),
    tellLedger: (turns) => ledger.confirmTurnOvers(turns.map(({ to }) => to)),
  });
  const released = await confirm<AllocationRef>(domain, epoch, {
    read: ledger.unconfirmedReleases,
    tellCounters: (allocations) => counters.free(epoch, allocations),
    tellLedger: ledger.confirmReleases,
  });
  const shrunk = await confirm<Rest>(domain, epoch, {
    read: ledger.unconfirmedShrinks,
    tellCounters: (allocations) => counters.shrink(epoch, allocations),
    tellLedger: ledger.confirmShrinks,
  });
  return turnedOver + released + shrunk;
}

async function confirm<Item>(domain: QuotaDomain, epoch: number, of: GivenBack<Item>): Promise<number> {
  let confirmed = 0;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const allocations = await of.read(PAGE);
    if (allocations.length === 0) break;
    if ((await of.tellCounters(allocations)) === "closed") {
      domain.epochs.countersClosed(epoch);
      break;
    }
    await of.tellLedger(allocations);
    confirmed += allocations.length;
    if (allocations.length < PAGE) break;
  }
  return confirmed;
}

/** Frees released allocations in the counters and tells the ledger so. */
export async function freeReleased(domain: QuotaDomain, epoch: number, refs: readonly AllocationRef[]): Promise<void> {
  if (refs.length === 0) return;
  const freed = await domain.counters.free(epoch, refs);
  if (freed === "closed") return domain.epochs.countersClosed(epoch);
  await domain.ledger.confirmReleases(refs);
}
