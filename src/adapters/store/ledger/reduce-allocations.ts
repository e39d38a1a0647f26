import { cutsOf, type Heir } from "../../../core/quota/heirs.ts";
import type { ReleaseRequest } from "../../../core/quota/ledger.ts";
import { type Executor, json } from "../db/db.ts";
import { prepared } from "../db/prepared.ts";
import { NEW_ROW, NEW_ROW_TYPES } from "./ledger-row.ts";
import { IS_NOMINEE } from "./name-heirs.ts";
import { COUNTED_IN } from "./sums.ts";

/** A live allocation that can be reduced, as `REDUCIBLE` reads it under the lock of its pool. */
export type Reducible = {
  readonly id: number;
  readonly pool: string;
  readonly token: string;
  readonly amount: number;
  readonly fence: string;
  /** The first goes first. */
  readonly heirs: readonly Heir[];
};

const heirsSql = (isHeir: string) => `
coalesce((
  select json_agg(json_build_object(
           'id', h.id, 'jobUid', h.job_uid, 'admission', h.admission, 'pool', h.pool, 'queue', h.queue,
           'project', h.project, 'namespace', h.namespace, 'lacks', h.lacks
         ) order by w.place)
    from unnest(a.heirs) with ordinality as w (id, place) join token_heirs h on h.id = w.id and h.pool = a.pool
   where ${isHeir}
), '[]') as heirs`;

/** The columns that `LEDGER_COLUMNS` lack of a `Reducible`, from a row `a` of allocations. */
export const REDUCIBLE_TOO = `a.id, ${heirsSql(IS_NOMINEE)}`;

/** The columns of a `Reducible`, from a row `a` of allocations. `isHeir` selects its heirs, rows `h` of token_heirs. */
export function reducible(isHeir: string): string {
  return `a.id, a.pool, a.token, a.amount, a.fence::text as fence, ${heirsSql(isHeir)}`;
}

export const REDUCIBLE = reducible(IS_NOMINEE);

/** What a live allocation keeps of its amount. 0: it ends, for this reason. */
export type Reduction = {
  readonly row: Reducible;
  readonly kept: number;
  readonly reason: ReleaseRequest["reason"];
  /** True: a nominee's hold, which it lacks again, so that what is released to it later makes up for it. */
  readonly isCeded?: boolean;
};

/**
 * Ends or reduces live allocations, turns what they lose over to their heirs, and moves the sums, in one statement,
 * since grants wait meanwhile. The caller has locked the pools. Recomputes the sums of a pool from its live rows if one
 * of them is too small to be lowered: a program that keeps fewer sums wrote those rows. It also recomputes those of the
 * pools `anew`.
 */
export async function reduceAllocations(
  tx: Executor,
  reductions: readonly Reduction[],
  { nowMs, anew = [] }: { readonly nowMs: number; readonly anew?: readonly string[] },
): Promise<void> {
  if (reductions.length + anew.length === 0) return;
  await tx.query(REDUCE, [
    reductions.map(({ row }) => row.id),
    nowMs,
    anew,
    json(cutColumns(reductions)),
    reductions.map(({ kept }) => kept),
    reductions.map(({ reason }) => reason),
    reductions.map(({ isCeded = false }) => isCeded),
  ]);
}

function cutColumns(reductions: readonly Reduction[]) {
  return cutsOf(reductions.map(({ row, kept }) => ({ ...row, kept }))).map(({ line, heir, amount, kept }) => ({
    heir: heir.id,
    pool: line.pool,
    fence: line.fence,
    cut_token: line.token,
    cut_kept: kept,
    queue: heir.queue,
    project: heir.project,
    namespace: heir.namespace,
    amount,
    job_uid: heir.jobUid,
    admission: heir.admission,
    hold: heir.boards !== true,
  }));
}

/**
 * The lines come as arrays: the server plans for a hundred rows of JSON, and then reads all tokens that ever were, if
 * they are few. The parts that nothing reads run after the statement, the last one first. The fence of a cut is that of
 * the allocation that it was taken from. Nobody can guess its token, and so be in its way.
 */
const REDUCE = prepared(`
with line as (
  select * from unnest($1::bigint[], $5::bigint[], $6::text[], $7::boolean[]) as l (id, kept, reason, ceded)
), cut as (
  select *
    from json_to_recordset($4::json)
      as c (${NEW_ROW_TYPES}, heir bigint, cut_token text, cut_kept bigint, hold boolean)
), share as (
  select c.pool, c.scope, c.name, sum(c.amount)::bigint as amount
    from (
      select a.pool, s.scope, s.name, l.kept - a.amount as amount
        from line l join allocations a on a.id = l.id and a.released_ms is null
       cross join lateral ${COUNTED_IN}
       union all
      select a.pool, s.scope, s.name, a.amount from cut a cross join lateral ${COUNTED_IN}
    ) c
   where c.name is not null
   group by c.pool, c.scope, c.name
), wrong as (
  select pool from unnest($3::text[]) as p (pool)
  union
  select c.pool from share c left join allocation_sums s using (pool, scope, name)
   where coalesce(s.used, 0) + c.amount < 0
), anew as (
  select live.pool, live.scope, live.name, live.used
    from wrong w
   cross join lateral (
           select a.pool, s.scope, s.name, sum(a.amount)::bigint as used
             from (
               select o.pool, o.queue, o.project, o.namespace, coalesce(l.kept, o.amount) as amount
                 from allocations o left join line l on l.id = o.id
                where o.pool = w.pool and o.released_ms is null
                union all
               select c.pool, c.queue, c.project, c.namespace, c.amount from cut c where c.pool = w.pool
             ) a
            cross join lateral ${COUNTED_IN}
            where s.name is not null
            group by a.pool, s.scope, s.name
         ) live
), next as (
  select c.pool, c.scope, c.name, coalesce(s.used, 0) + c.amount as used
    from share c left join allocation_sums s using (pool, scope, name)
   where c.amount <> 0 and c.pool not in (select pool from wrong)
  union all
  select pool, scope, name, used from anew
  union all
  select s.pool, s.scope, s.name, 0
    from wrong w join allocation_sums s using (pool)
   where s.used <> 0
     and not exists (select from anew n where (n.pool, n.scope, n.name) = (s.pool, s.scope, s.name))
), turned_over as (
  insert into allocations (${NEW_ROW}, granted_ms, cut_token, cut_kept, cut_amount, hold, untold)
  select c.pool, 'job/' || c.job_uid || '/hold/' || gen_random_uuid(), c.queue, c.project, c.namespace, c.amount,
         c.fence, c.job_uid, c.admission, null, null, $2::bigint, c.cut_token, c.cut_kept,
         c.amount, c.hold, true
    from cut c
   order by c.cut_token, c.cut_kept desc
), reduced as (
  update allocations a
     set amount = case when l.kept = 0 then a.amount else l.kept end, shrunk = a.shrunk or l.kept > 0,
         released_ms = case when l.kept = 0 then $2::bigint end,
         release_reason = case when l.kept = 0 then l.reason end
    from line l
   where a.id = l.id and a.released_ms is null
), served as (
  update token_heirs h set lacks = h.lacks + c.amount
    from (
      select heir, sum(amount)::bigint as amount
        from (
          select heir, -amount as amount from cut
           union all
          select t.id, a.amount - l.kept
            from line l
            join allocations a on a.id = l.id and a.released_ms is null
            join token_heirs t on t.job_uid = a.job_uid and t.pool = a.pool
           where l.ceded
        ) c
       group by heir
    ) c
   where h.id = c.heir
)
insert into allocation_sums as s (pool, scope, name, used)
select pool, scope, name, used from next order by pool, scope, name
on conflict (pool, scope, name) do update set used = excluded.used where s.used <> excluded.used`);
