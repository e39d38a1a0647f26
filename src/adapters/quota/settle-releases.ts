import type { LineRef, Rest } from "../../core/quota/counters.ts";
import type { Desk } from "./desk.ts";

/** Lines that are taken from the ledger at once, and how often in one go: what is left is settled in the next. */
const PAGE = 500;
const PAGES_MAX = 20;

/** One kind of what was given back, on its way from the ledger to the counters. */
type GivenBack<Line> = {
  /** The next lines that the counters have not been told of. */
  readonly read: (limit: number) => Promise<readonly Line[]>;
  readonly tell: (lines: readonly Line[]) => Promise<"closed" | readonly string[]>;
  /** Tells the ledger that the counters have heard. */
  readonly confirm: (lines: readonly Line[]) => Promise<void>;
};

/** Frees in the counters what the ledger has released, whole tokens and parts, and tells the ledger so; answers how many lines that were. */
export async function settleReleases(desk: Desk, epoch: number): Promise<number> {
  const { ledger, counters } = desk;
  const released = await settle<LineRef>(desk, epoch, {
    read: ledger.unconfirmedReleases,
    tell: (lines) => counters.free(epoch, lines),
    confirm: ledger.confirmReleases,
  });
  const shrunk = await settle<Rest>(desk, epoch, {
    read: ledger.unconfirmedShrinks,
    tell: (lines) => counters.shrink(epoch, lines),
    confirm: ledger.confirmShrinks,
  });
  return released + shrunk;
}

async function settle<Line>(desk: Desk, epoch: number, { read, tell, confirm }: GivenBack<Line>): Promise<number> {
  let settled = 0;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const lines = await read(PAGE);
    if (lines.length === 0) break;
    if ((await tell(lines)) === "closed") {
      desk.domain.notOpened(epoch);
      break;
    }
    await confirm(lines);
    settled += lines.length;
    if (lines.length < PAGE) break;
  }
  return settled;
}
