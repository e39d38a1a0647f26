import type { LineRef, Rest } from "../core/quota/counters.ts";
import type { QuotaDomain } from "./domain/domain.ts";

/** Lines of one read of the ledger, and reads of one call. The next call settles the remaining lines. */
const PAGE = 500;
const PAGES_MAX = 20;

/** One kind of given-back lines on the way from the ledger to the counters: whole tokens, or parts. */
type GivenBack<Line> = {
  /** Reads the next lines that the counters do not know. */
  readonly read: (limit: number) => Promise<readonly Line[]>;
  readonly tellCounters: (lines: readonly Line[]) => Promise<"closed" | readonly string[]>;
  /** Tells the ledger that the counters know these lines. */
  readonly confirm: (lines: readonly Line[]) => Promise<void>;
};

/**
 * Frees in the counters everything that the ledger has released, whole tokens and parts, and tells the ledger so.
 * Returns the number of lines.
 */
export async function settleReleases(domain: QuotaDomain, epoch: number): Promise<number> {
  const { ledger, counters } = domain;
  const released = await settle<LineRef>(domain, epoch, {
    read: ledger.unconfirmedReleases,
    tellCounters: (lines) => counters.free(epoch, lines),
    confirm: ledger.confirmReleases,
  });
  const shrunk = await settle<Rest>(domain, epoch, {
    read: ledger.unconfirmedShrinks,
    tellCounters: (lines) => counters.shrink(epoch, lines),
    confirm: ledger.confirmShrinks,
  });
  return released + shrunk;
}

async function settle<Line>(domain: QuotaDomain, epoch: number, of: GivenBack<Line>): Promise<number> {
  let settled = 0;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const lines = await of.read(PAGE);
    if (lines.length === 0) break;
    if ((await of.tellCounters(lines)) === "closed") {
      domain.epochs.countersClosed(epoch);
      break;
    }
    await of.confirm(lines);
    settled += lines.length;
    if (lines.length < PAGE) break;
  }
  return settled;
}

/** Frees released lines in the counters and tells the ledger so. */
export async function freeReleased(domain: QuotaDomain, epoch: number, refs: readonly LineRef[]): Promise<void> {
  if (refs.length === 0) return;
  const freed = await domain.counters.free(epoch, refs);
  if (freed === "closed") return domain.epochs.countersClosed(epoch);
  await domain.ledger.confirmReleases(refs);
}
