import type { LedgerRow, Limits } from "../../../core/quota/counters.ts";
import type { RecordedSum } from "../../../core/quota/grant-book.ts";
import type { LedgerGrant, Tombstone } from "../../../core/quota/ledger.ts";
import { type Executor, json, onlyRow } from "../db/db.ts";
import { prepared, unseenArray } from "../db/prepared.ts";
import { LEDGER_COLUMNS, type LedgerColumns, ledgerRow, refText } from "./ledger-row.ts";
import { type LimitBounds, type LimitsRow, limitsOf, limitsParams, readLimitsSql } from "./quota-limits.ts";
import { REDUCIBLE_TOO, type Reducible } from "./reduce-allocations.ts";
import { recordedScopes, type SumKey, scopeOfSum, sumKey } from "./sums.ts";
import { type TombstoneRow, tombstone } from "./tombstones.ts";

/** A row of the ledger that is live, or that was live once. */
export type KnownRow = LedgerRow & { readonly live: boolean };

/** Everything in the ledger that decides whether grants are recorded. */
export type GrantFacts = {
  /** The rows of the grants' tokens that are live or have the grants' fences. There may be others of their pools. */
  readonly rows: readonly KnownRow[];
  readonly limits: Limits;
  /** The sums that limit the grants. They include all queues of the pools: a queue's use counts in those above it. */
  readonly sums: readonly RecordedSum[];
  /** The tombstones of the grants' tokens. */
  readonly tombstones: readonly Tombstone[];
  /** The holds of the jobs whose new admissions the grants are for, and what those that move hold, oldest first. */
  readonly holds: readonly HoldRow[];
};

/** A live hold of a nominee, or a token of the admission that a gang moves from. */
export type HoldRow = LedgerRow & { readonly row: Reducible };

/**
 * Reads the facts in one statement, since other grants wait meanwhile. The caller has locked the domain and the pools.
 */
export async function readGrantFacts(
  tx: Executor,
  of: {
    readonly domain: string;
    readonly grants: readonly LedgerGrant[];
    readonly pools: readonly string[];
    readonly nowMs: number;
  },
  bounds: LimitBounds,
): Promise<GrantFacts> {
  const { domain, grants, pools } = of;
  const allocations = grants.flatMap((grant) => grant.allocations.map((one) => ({ ...one, fence: grant.fence })));
  const refs = allocations.map(refText);
  const charged = [...allocations, ...grants.flatMap(({ needs = [] }) => needs)];
  const scopes = charged.flatMap(recordedScopes).map(sumKey);
  const admitted = grants.flatMap(({ needs, holder, movesFrom = 0 }) =>
    needs !== undefined && holder.kind === "admission" ? [{ jobUid: holder.jobUid, movesFrom }] : [],
  );
  const found = onlyRow(
    await tx.query<FactsRow>(READ_FACTS, [
      ...limitsParams(domain, pools),
      json(refs),
      json(scopes.filter(({ scope }) => scope === "project" || scope === "namespace")),
      refs.map(({ token }) => token),
      admitted.map(({ jobUid }) => jobUid),
      of.nowMs,
      admitted.map(({ movesFrom }) => movesFrom),
    ]),
  );
  return {
    rows: found.rows.map((row) => ({ ...ledgerRow(row), live: row.live })),
    limits: limitsOf(found.limits, bounds),
    sums: found.sums.map(({ used, ...key }) => ({ scope: scopeOfSum(key), used })),
    tombstones: found.tombstones.map(tombstone),
    holds: found.holds.map((row) => ({ ...ledgerRow(row), row })),
  };
}

type FactsRow = {
  readonly rows: readonly (LedgerColumns & { readonly live: boolean })[];
  readonly limits: LimitsRow;
  readonly sums: readonly (SumKey & { readonly used: number })[];
  readonly tombstones: readonly TombstoneRow[];
  readonly holds: readonly (LedgerColumns & Reducible)[];
};

const POOLS = unseenArray("$3", "text");

/** Each fence and each job is looked up by itself: else the server reads all tokens that ever were, if they are few. */
const READ_FACTS = prepared(`
select (select row_to_json(limits) from (${readLimitsSql("$8::bigint", `name = any(${POOLS})`)}) limits) as limits,
       coalesce((
         select json_agg(known)
           from (
             select ${LEDGER_COLUMNS}, true as live
               from allocations a
              where a.pool = any(${POOLS}) and a.token = any(${unseenArray("$6", "text")}) and a.released_ms is null
             union all
             select ${LEDGER_COLUMNS}, false
               from json_to_recordset($4::json) as w (pool text, token text, fence bigint)
              cross join lateral (
                select * from allocations l
                 where (l.pool, l.token, l.fence) = (w.pool, w.token, w.fence) and l.released_ms is not null offset 0
              ) a
           ) known
       ), '[]') as rows,
       coalesce((
         select json_agg(counted)
           from (
             select pool, scope, name, used from allocation_sums
              where used > 0 and pool = any(${POOLS}) and scope in ('pool', 'queue')
             union all
             select s.pool, s.scope, s.name, s.used
               from (select distinct pool, scope, name
                       from json_to_recordset($5::json) as w (pool text, scope text, name text)) w
               join allocation_sums s using (pool, scope, name)
              where s.used > 0
           ) counted
       ), '[]') as sums,
       coalesce((
         select json_agg(buried)
           from (
             select distinct t.pool, t.token, t.holder, t.project, t.namespace, t.at_ms as "atMs"
               from quota_domains d
              cross join json_to_recordset($4::json) as w (pool text, token text)
               join token_tombstones t on t.domain = d.name and t.pool = w.pool and t.token = w.token
              where d.name = $1 and d.buried
           ) buried
       ), '[]') as tombstones,
       coalesce((
         select json_agg(hold order by id)
           from (
             select ${LEDGER_COLUMNS}, ${REDUCIBLE_TOO}
               from unnest(${unseenArray("$7", "uuid")}, ${unseenArray("$9", "int")}) as j (uid, moves_from)
              cross join lateral (
                select * from allocations l
                 where l.job_uid = j.uid and (l.hold or l.admission = j.moves_from) and l.released_ms is null offset 0
              ) a
              where a.pool = any(${POOLS})
           ) hold
       ), '[]') as holds`);
