import type { HeldToken } from "../../../core/quota/counters.ts";
import type { VoidOutcome } from "../../../core/quota/ledger.ts";
import { type Db, json } from "../db/db.ts";
import { IS_TELLABLE } from "./confirm-turn-overs.ts";
import { NEW_ROW, NEW_ROW_TYPES, newRow, refText } from "./ledger-row.ts";
import { takeDomainsOf } from "./quota-domains.ts";

/**
 * Prevents later commits of grants that the ledger does not know: writes their allocations as voided unless they are
 * recorded. Returns for each whether the ledger holds it live, voided or ended otherwise.
 */
export function voidGrants(db: Db, tokens: readonly HeldToken[], nowMs: number): Promise<readonly VoidOutcome[]> {
  if (tokens.length === 0) return Promise.resolve([]);
  return db.tx(async (tx) => {
    await takeDomainsOf(
      tx,
      tokens.map(({ pool }) => pool),
    );
    await tx.query(WRITE_VOIDED, [json(tokens.map(newRow)), nowMs]);
    const rows = await tx.query<{ outcome: VoidOutcome }>(READ_BACK, [json(tokens.map(refText))]);
    return rows.map(({ outcome }) => outcome);
  });
}

/** The rows start unconfirmed, so that the counters free them like released ones. */
const WRITE_VOIDED = `
insert into allocations (${NEW_ROW}, granted_ms, released_ms, release_reason)
select ${NEW_ROW}, $2, $2, 'voided'
  from json_to_recordset($1::json) as l (${NEW_ROW_TYPES})
on conflict (pool, token, fence) do nothing`;

const READ_BACK = `
select case when a.released_ms is null then 'live' when a.release_reason = 'voided' then 'voided'
            when ${IS_TELLABLE} then 'gone' else 'turnedOver' end as outcome
  from json_array_elements($1::json) with ordinality as w (ref, at)
  join allocations a
    on a.pool = w.ref ->> 'pool' and a.token = w.ref ->> 'token' and a.fence = (w.ref ->> 'fence')::bigint
 order by w.at`;
