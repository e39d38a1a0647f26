import type { Desk } from "./desk.ts";

/** Releases that are taken from the ledger at once, and how often in one go: what is left is settled in the next. */
const PAGE = 500;
const PAGES_MAX = 20;

/** Frees in the counters what the ledger has released, and tells the ledger so; answers how many lines that were. */
export async function settleReleases(desk: Desk, epoch: number): Promise<number> {
  let settled = 0;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const refs = await desk.ledger.unconfirmedReleases(PAGE);
    if (refs.length === 0) break;
    const freed = await desk.counters.free(epoch, refs);
    if (freed === "closed") {
      desk.domain.notOpened(epoch);
      break;
    }
    await desk.ledger.confirmReleases(refs);
    settled += refs.length;
    if (refs.length < PAGE) break;
  }
  return settled;
}
