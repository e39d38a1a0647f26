/** Serves admins who suspect wrong counts: reads counters and ledger at one moment, so that nothing is under way. */

import { tokenKey } from "../../../core/quota/allocations.ts";
import type { TokenName } from "../../../core/quota/calls.ts";
import type { HeldToken, LedgerRow } from "../../../core/quota/counters.ts";
import type { BothSums, ReadCounters } from "../../../core/quota/ledger.ts";
import { UnavailableError } from "../../../runtime/unavailable-error.ts";
import { type Db, type Executor, onlyRow } from "../db/db.ts";
import { findLive } from "./find-live.ts";
import { takeDomain } from "./quota-domains.ts";
import { UNCONFIRMED_RELEASES } from "./quota-epoch.ts";
import { type LimitBounds, readLimits } from "./quota-limits.ts";
import { RECORDED_USE, type RecordedUse, usedWith } from "./read-used.ts";
import { UNCONFIRMED_SHRINKS } from "./settle-shrinks.ts";
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
    const limits = await readLimits(tx, domain, bounds);
    await takePools(
      tx,
      limits.pools.map(({ pool }) => pool),
    );
    const { underWay, recorded } = await readMoment(tx, domain);
    const moment = await readCounters(underWay);
    if (moment === "closed") return moment;
    const beside = besideRows(moment.tokens, await findLive(tx, moment.tokens));
    const ledger = usedWith(limits, recorded, beside);
    return { counters: moment.used, ledger, sameLimits: moment.limitsVersion === limits.version };
  });
}

type Moment = { readonly underWay: readonly TokenName[]; readonly recorded: readonly RecordedUse[] };

/** Reads the recorded sums, and the tokens of releases and reductions that the counters do not have yet. */
async function readMoment(tx: Executor, domain: string): Promise<Moment> {
  const { released, shrunk, recorded } = onlyRow(await tx.query<MomentRow>(MOMENT, [domain, UNDER_WAY_MAX + 1]));
  if (released.length > UNDER_WAY_MAX || shrunk.length > UNDER_WAY_MAX) {
    throw new UnavailableError("too many releases are on their way to the counters to compare them with the ledger");
  }
  return { underWay: [...released, ...shrunk], recorded };
}

type MomentRow = {
  readonly released: readonly TokenName[];
  readonly shrunk: readonly TokenName[];
  readonly recorded: readonly RecordedUse[];
};

const MOMENT = `
select coalesce((select json_agg(r) from (${UNCONFIRMED_RELEASES}) r), '[]') as released,
       coalesce((select json_agg(s) from (${UNCONFIRMED_SHRINKS}) s), '[]') as shrunk,
       coalesce((select json_agg(u) from (${RECORDED_USE}) u), '[]') as recorded`;

/** Returns the part of each held token that no live row with its fence has. */
function besideRows(held: readonly HeldToken[], live: readonly LedgerRow[]): readonly HeldToken[] {
  const rows = new Map(live.map((row) => [tokenKey(row), row]));
  return held.flatMap((token) => {
    const row = rows.get(tokenKey(token));
    const amount = row?.fence === token.fence ? token.amount - row.amount : token.amount;
    return amount > 0 ? [{ ...token, amount }] : [];
  });
}
