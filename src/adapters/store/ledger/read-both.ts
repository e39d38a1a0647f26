/** Serves admins who suspect wrong counts: reads counters and ledger at one moment, so that nothing is under way. */

import { tokenKey } from "../../../core/quota/allocations.ts";
import type { AllocationRef, HeldToken, LedgerRow } from "../../../core/quota/counters.ts";
import type { BothSums, ReadCounters } from "../../../core/quota/ledger.ts";
import { UnavailableError } from "../../../runtime/unavailable-error.ts";
import type { Db, Executor } from "../db/db.ts";
import { findLive } from "./find-live.ts";
import { takeDomain } from "./quota-domains.ts";
import { poolsIn, unconfirmedReleases } from "./quota-epoch.ts";
import { type LimitBounds, readLimits } from "./quota-limits.ts";
import { recordedIn, usedWith } from "./read-used.ts";
import { unconfirmedShrinks } from "./settle-shrinks.ts";
import { takePools } from "./sums.ts";

/** The maximum number of releases under way. The reaper settles as many in a second. */
const UNDER_WAY_MAX = 10_000;

/**
 * Reads the counters while the ledger of a domain stands still, and the use that they must show: the recorded sums, the
 * grants that the ledger does not have yet, and the releases that the counters do not have yet.
 *
 * This is the one transaction that awaits more than its statements: a single read of the counters, which has a time
 * limit of its own. Without the locks no two reads are of one moment.
 */
export function readBoth(
  db: Db,
  of: { readonly domain: string; readonly bounds: LimitBounds; readonly readCounters: ReadCounters },
): Promise<BothSums | "closed"> {
  const { domain, bounds, readCounters } = of;
  return db.tx(async (tx) => {
    await takeDomain(tx, domain);
    await takePools(tx, await poolsIn(tx, domain));
    const moment = await readCounters(await underWay(tx, domain));
    if (moment === "closed") return moment;
    const limits = await readLimits(tx, domain, bounds);
    const beside = besideRows(moment.tokens, await findLive(tx, moment.tokens));
    const ledger = usedWith(limits, await recordedIn(tx, domain), beside);
    return { counters: moment.used, ledger, sameLimits: moment.limitsVersion === limits.version };
  });
}

async function underWay(tx: Executor, domain: string): Promise<readonly AllocationRef[]> {
  const released = await unconfirmedReleases(tx, domain, UNDER_WAY_MAX + 1);
  const shrunk = await unconfirmedShrinks(tx, domain, UNDER_WAY_MAX + 1);
  if (released.length > UNDER_WAY_MAX || shrunk.length > UNDER_WAY_MAX) {
    throw new UnavailableError("too many releases are on their way to the counters to compare them with the ledger");
  }
  return [...released, ...shrunk];
}

/** Returns the part of each held token that no live row with its fence has. */
function besideRows(held: readonly HeldToken[], live: readonly LedgerRow[]): readonly HeldToken[] {
  const rows = new Map(live.map((row) => [tokenKey(row), row]));
  return held.flatMap((token) => {
    const row = rows.get(tokenKey(token));
    const amount = row?.fence === token.fence ? token.amount - row.amount : token.amount;
    return amount > 0 ? [{ ...token, amount }] : [];
  });
}
