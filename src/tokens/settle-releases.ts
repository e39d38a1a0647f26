import type { AllocationRef, Rest, TurnOver } from "../core/quota/counters.ts";
import type { QuotaDomain } from "./domain/domain.ts";

/** Allocations of one read of the ledger, and reads of one call. The next call settles the remaining allocations. */
const PAGE = 500;
const PAGES_MAX = 20;

/** One kind of changes on the way from the ledger to the counters: whole tokens, parts, or what heirs got. */
type GivenBack<Item> = {
  /** Reads the next allocations that the counters do not know. */
  readonly read: (limit: number) => Promise<readonly Item[]>;
  readonly tellCounters: (allocations: readonly Item[]) => Promise<"closed" | readonly string[]>;
  /** Tells the ledger that the counters know these allocations. */
  readonly confirm: (allocations: readonly Item[]) => Promise<void>;
};

/**
 * Turns over in the counters what the ledger has turned over to heirs, then frees everything that it has released,
 * whole tokens and parts, and tells the ledger so. Returns the number of allocations.
 */
export async function settleReleases(domain: QuotaDomain, epoch: number): Promise<number> {
  const { ledger, counters } = domain;
  const turnedOver = await settle<TurnOver>(domain, epoch, {
    read: ledger.untoldTurnOvers,
    tellCounters: (turns) => counters.turnOver(epoch, turns),
    confirm: (turns) => ledger.confirmTurnOvers(turns.map(({ to }) => to)),
  });
  const released = await settle<AllocationRef>(domain, epoch, {
    read: ledger.unconfirmedReleases,
    tellCounters: (allocations) => counters.free(epoch, allocations),
    confirm: ledger.confirmReleases,
  });
  const shrunk = await settle<Rest>(domain, epoch, {
    read: ledger.unconfirmedShrinks,
    tellCounters: (allocations) => counters.shrink(epoch, allocations),
    confirm: ledger.confirmShrinks,
  });
  return turnedOver + released + shrunk;
}

async function settle<Item>(domain: QuotaDomain, epoch: number, of: GivenBack<Item>): Promise<number> {
  let settled = 0;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const allocations = await of.read(PAGE);
    if (allocations.length === 0) break;
    if ((await of.tellCounters(allocations)) === "closed") {
      domain.epochs.countersClosed(epoch);
      break;
    }
    await of.confirm(allocations);
    settled += allocations.length;
    if (allocations.length < PAGE) break;
  }
  return settled;
}

/** Frees released allocations in the counters and tells the ledger so. */
export async function freeReleased(domain: QuotaDomain, epoch: number, refs: readonly AllocationRef[]): Promise<void> {
  if (refs.length === 0) return;
  const freed = await domain.counters.free(epoch, refs);
  if (freed === "closed") return domain.epochs.countersClosed(epoch);
  await domain.ledger.confirmReleases(refs);
}
