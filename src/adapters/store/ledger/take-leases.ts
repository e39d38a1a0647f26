import type { RequestedBy } from "../../../core/quota/ledger.ts";
import { type Executor, json } from "../db/db.ts";

/** True: the request counts. */
export type LeaseCheck = (one: RequestedBy) => boolean;

/**
 * Returns a check for grants and releases that workers request on behalf of a job's admission. A request counts if its
 * lease of the bucket is current and the admission has not released its tokens. Both are locked until the transaction
 * ends, so a new holder of the bucket, or a release of the tokens, waits and then sees the commit. Call it before
 * locking domains and pools, which is the order in which records lock them.
 */
export async function takeLeases(tx: Executor, asked: readonly RequestedBy[]): Promise<LeaseCheck> {
  const wanted = asked.flatMap(({ holder, lease }) =>
    holder?.kind === "admission" && lease !== undefined
      ? [{ jobUid: holder.jobUid, admission: holder.admission, ...lease }]
      : [],
  );
  const rows = wanted.length === 0 ? [] : await tx.query<Parameters<typeof keyOf>[0]>(TAKE, [json(wanted)]);
  const present = new Set(rows.map(keyOf));
  return ({ holder, lease }) =>
    lease === undefined || (holder?.kind === "admission" && present.has(keyOf({ ...holder, ...lease })));
}

function keyOf(of: {
  readonly jobUid: string;
  readonly admission: number;
  readonly bucket: number;
  readonly epoch: number;
}): string {
  return `${of.jobUid}/${of.admission}/${of.bucket}/${of.epoch}`;
}

/** The order of the admissions reads all leases before it, so that these are locked first. */
const TAKE = `
with wanted as (
  select "jobUid", admission, bucket, epoch
    from json_to_recordset($1::json) as w ("jobUid" uuid, admission int, bucket smallint, epoch bigint)
), lease as (
  select bucket, epoch from bucket_leases
   where (bucket, epoch) in (select bucket, epoch from wanted)
   order by bucket
     for key share
)
select a.job_uid as "jobUid", a.number as admission, w.bucket, w.epoch
  from wanted w
  join lease l on l.bucket = w.bucket and l.epoch = w.epoch
  join admissions a on a.job_uid = w."jobUid" and a.number = w.admission and a.tokens_released_ms is null
 order by a.job_uid, a.number
   for share of a`;
