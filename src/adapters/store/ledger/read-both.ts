/** Serves admins who suspect wrong counts: reads counters and ledger at one moment, so that nothing is under way. */

import { tokenKey } from "../../../core/quota/allocations.ts";
import type { HeldToken, LedgerRow, TokenName } from "../../../core/quota/counters.ts";
import type { BothSums, ReadCounters } from "../../../core/quota/ledger.ts";
import { UnavailableError } from "../../../runtime/unavailable-error.ts";
import { type Db, type Executor, onlyRow } from "../db/db.ts";
import { findLive } from "./find-live.ts";
import { takeDomain } from "./quota-domains.ts";
import { type LimitBounds, readLimits } from "./quota-limits.ts";
import { RECORDED_USE, type RecordedUse, usedWith } from "./read-used.ts";
import { takePools } from "./sums.ts";

/** The maximum number of releases, reductions and turn-overs under way. The reaper settles as many in a second. */
const UNDER_WAY_MAX = 10_000;

/**
 * Reads the counters while the ledger of a domain stands still, and the use that they must show: the recorded sums, the
 * grants that the ledger does not have yet, less the tokens turned over that the counters do not have yet, and the
 * releases that they do not have yet.
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
    const { underWay, untold, recorded } = await readMoment(tx, domain);
    const moment = await readCounters(underWay);
    if (moment === "closed") return moment;
    const live = await findLive(tx, [...moment.tokens, ...untold]);
    const beside = [...besideRows(moment.tokens, live), ...missingRows(moment.tokens, live, untold)];
    const ledger = usedWith(limits, recorded, beside);
    return { counters: moment.used, ledger, sameLimits: moment.limitsVersion === limits.version };
  });
}

type Moment = {
  /** The tokens of which the counters may not know everything. */
  readonly underWay: readonly TokenName[];
  /** Turned over to heirs. The counters may not hold them yet. */
  readonly untold: readonly TokenName[];
  readonly recorded: readonly RecordedUse[];
};

async function readMoment(tx: Executor, domain: string): Promise<Moment> {
  const { tokens, recorded } = onlyRow(await tx.query<MomentRow>(MOMENT, [domain, UNDER_WAY_MAX + 1]));
  if (tokens.length > UNDER_WAY_MAX) {
    throw new UnavailableError("too many releases are on their way to the counters to compare them with the ledger");
  }
  return { underWay: tokens, untold: tokens.filter(({ untold }) => untold), recorded };
}

type MomentRow = {
  readonly tokens: readonly (TokenName & { readonly untold: boolean })[];
  readonly recorded: readonly RecordedUse[];
};

/** Each part has an index of its own. */
const MOMENT = `
with changed as (
  select id from allocations where released_ms is not null and not confirmed
   union select id from allocations where shrunk and released_ms is null
   union select id from allocations where untold
)
select coalesce((
         select json_agg(t) from (
           select a.pool, a.token, a.untold
             from changed c join allocations a on a.id = c.id left join pools p on p.name = a.pool
            where coalesce(p.domain, 'default') = $1
            limit $2
         ) t
       ), '[]') as tokens,
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

/** Returns the rows of untold tokens that the counters do not hold yet, with their amounts taken off. */
function missingRows(
  held: readonly HeldToken[],
  live: readonly LedgerRow[],
  untold: readonly TokenName[],
): readonly LedgerRow[] {
  const known = new Set(held.map(tokenKey));
  const missing = new Set(untold.map(tokenKey).filter((key) => !known.has(key)));
  return live.flatMap((row) => (missing.has(tokenKey(row)) ? [{ ...row, amount: -row.amount }] : []));
}
