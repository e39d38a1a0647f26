import type { ReleaseRequest } from "../../../core/quota/ledger.ts";
import { type Executor, json } from "../db/db.ts";
import { COUNTED_IN } from "./sums.ts";

/** What a live allocation keeps of its amount. 0: it ends, for this reason. */
export type Reduction = { readonly id: number; readonly kept: number; readonly reason: ReleaseRequest["reason"] };

/**
 * Ends or reduces live allocations and lowers the sums, in one statement, since grants wait meanwhile. The caller has
 * locked the pools. Recomputes the sums of a pool from its live rows if one of them is too small to be lowered: a
 * program that keeps fewer sums wrote those rows. It also recomputes those of the pools `anew`.
 */
export async function reduceAllocations(
  tx: Executor,
  reductions: readonly Reduction[],
  { nowMs, anew = [] }: { readonly nowMs: number; readonly anew?: readonly string[] },
): Promise<void> {
  if (reductions.length + anew.length > 0) await tx.query(REDUCE, [json(reductions), nowMs, anew]);
}

const REDUCE = `
with line as (
  select * from json_to_recordset($1::json) as l (id bigint, kept bigint, reason text)
), share as (
  select a.pool, s.scope, s.name, sum(a.amount - l.kept)::bigint as amount
    from line l join allocations a on a.id = l.id and a.released_ms is null
   cross join lateral ${COUNTED_IN}
   where s.name is not null
   group by a.pool, s.scope, s.name
), wrong as (
  select pool from unnest($3::text[]) as p (pool)
  union
  select c.pool from share c left join allocation_sums s using (pool, scope, name) where coalesce(s.used, 0) < c.amount
), anew as (
  select live.pool, live.scope, live.name, live.used
    from wrong w
   cross join lateral (
           select a.pool, s.scope, s.name, sum(coalesce(l.kept, a.amount))::bigint as used
             from allocations a
             left join line l on l.id = a.id
            cross join lateral ${COUNTED_IN}
            where a.pool = w.pool and a.released_ms is null and s.name is not null
            group by a.pool, s.scope, s.name
         ) live
), next as (
  select s.pool, s.scope, s.name, s.used - c.amount as used
    from share c join allocation_sums s using (pool, scope, name)
   where c.pool not in (select pool from wrong)
  union all
  select pool, scope, name, used from anew
  union all
  select s.pool, s.scope, s.name, 0
    from wrong w join allocation_sums s using (pool)
   where s.used <> 0
     and not exists (select from anew n where (n.pool, n.scope, n.name) = (s.pool, s.scope, s.name))
), reduced as (
  update allocations a
     set amount = case when l.kept = 0 then a.amount else l.kept end, shrunk = a.shrunk or l.kept > 0,
         released_ms = case when l.kept = 0 then $2::bigint end,
         release_reason = case when l.kept = 0 then l.reason end
    from line l
   where a.id = l.id and a.released_ms is null
)
insert into allocation_sums as s (pool, scope, name, used)
select pool, scope, name, used from next order by pool, scope, name
on conflict (pool, scope, name) do update set used = excluded.used where s.used <> excluded.used`;
