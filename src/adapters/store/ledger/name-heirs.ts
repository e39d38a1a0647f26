/** Serves nominees: names them as the heirs of what their victims hold. */
import { type Executor, json } from "../db/db.ts";

/** A nominee, and the admissions that end for it. */
export type NamedHeir = {
  readonly jobUid: string;
  /** The number of the admission that the nominee is to get. */
  readonly admission: number;
  readonly queue: string;
  readonly project: string;
  readonly namespace: string;
  /** All that its admission needs. It lacks that, less what it holds. Each pool once. */
  readonly needs: readonly { readonly pool: string; readonly amount: number }[];
  /** May include other nominees, with the admissions that they are to get: holds have heirs like other tokens. */
  readonly victims: readonly JobAdmission[];
};

/**
 * True for a row of `token_heirs h` whose job is a nominee still. An admission may leave rows of pools that it does not
 * use, which go later: what drains meanwhile is not the job's.
 */
export const IS_NOMINEE = `
exists (
  select from jobs j
   where j.uid = h.job_uid and j.phase = 'WAITING' and j.cancel is null and j.delete_ms is null
     and j.status ->> 'nomination' is not null
)`;

/**
 * Names nominees as heirs: each token that a victim's members hold now is turned over to them once it is released, up
 * to what they lack. Of a victim with several heirs, the one that was named first goes first, and those that only have
 * a reservation go after the others. Naming a nominee again replaces what it needs and adds victims. Each
 * nominee comes once.
 *
 * The caller has locked the nominees, the victims, and the pools of `needs`.
 */
export async function nameHeirs(tx: Executor, heirs: readonly NamedHeir[]): Promise<void> {
  const needs = heirs.flatMap(({ needs, victims: _, ...heir }) =>
    needs.map(({ pool, amount }) => ({ ...heir, pool, amount })),
  );
  if (needs.length === 0) return;
  const victims = heirs.flatMap(({ jobUid: heir, victims }, place) => victims.map((one) => ({ heir, place, ...one })));
  await tx.query(NAME_HEIRS, [json(needs), json(victims)]);
}

/**
 * The tokens of members, and holds, start with the name of their job. Others are of plugins, which release them by
 * themselves.
 */
const NAME_HEIRS = `
with need as (
  select * from json_to_recordset($1::json)
    as n ("jobUid" uuid, admission int, pool text, queue text, project text, namespace text, amount bigint)
), heir as (
  insert into token_heirs (job_uid, admission, pool, queue, project, namespace, lacks)
  select "jobUid", admission, pool, queue, project, namespace,
         greatest(0, amount - coalesce((
           select sum(a.amount) from allocations a
            where a.job_uid = n."jobUid" and a.pool = n.pool and a.hold and a.released_ms is null
         ), 0))
    from need n
   order by "jobUid", pool
  on conflict (job_uid, pool) do update
     set admission = excluded.admission, queue = excluded.queue, project = excluded.project,
         namespace = excluded.namespace, lacks = excluded.lacks
  returning id, job_uid, pool
), named as (
  select a.id, array_agg(h.id order by v.place) as heirs
    from json_to_recordset($2::json) as v (heir uuid, place int, "jobUid" uuid, admission int)
    join heir h on h.job_uid = v.heir
    join allocations a
      on a.job_uid = v."jobUid" and a.admission = v.admission and a.pool = h.pool and a.released_ms is null
   where a.job_uid <> h.job_uid and starts_with(a.token, 'job/' || a.job_uid || '/')
     and (a.heirs is null or h.id <> all(a.heirs))
   group by a.id
)
update allocations a
   set heirs = (
         select array_agg(o.id order by (j.status -> 'nomination' ->> 'reservation') is not null, o.place)
           from unnest(coalesce(a.heirs, '{}') || n.heirs) with ordinality as o (id, place)
           left join token_heirs t on t.id = o.id
           left join jobs j on j.uid = t.job_uid
       )
  from named n
 where a.id = n.id`;

/** An admission of a job. */
export type JobAdmission = { readonly jobUid: string; readonly admission: number };
