import type { BucketLease } from "../../../core/job/bucket.ts";
import type { Executor } from "../db/db.ts";

/** The jobs of these buckets that are due to be looked at, the most overdue first. */
export async function dueJobs(
  executor: Executor,
  buckets: readonly number[],
  nowMs: number,
  limit: number,
): Promise<readonly string[]> {
  const rows = await executor.query<{ uid: string }>(DUE_JOBS, [buckets, nowMs, limit]);
  return rows.map((row) => row.uid);
}

const DUE_JOBS = `
select uid from jobs
 where recheck_at_ms <= $2 and bucket = any($1::smallint[])
 order by recheck_at_ms, uid
 limit $3`;

/** A new time to look again at a job, under the lease of its bucket. Null: no time. */
export type Recheck = {
  readonly jobUid: string;
  readonly atMs: number | null;
  readonly lease: BucketLease;
  readonly version: number;
};

/** Moves only the times to look again. Leaves out jobs that have another version: their change has set the time. */
export async function moveRechecks(executor: Executor, rechecks: readonly Recheck[]): Promise<void> {
  await executor.query(MOVE_RECHECKS, [
    rechecks.map(({ jobUid }) => jobUid),
    rechecks.map(({ atMs }) => atMs),
    rechecks.map(({ lease }) => lease.bucket),
    rechecks.map(({ lease }) => lease.epoch),
    rechecks.map(({ version }) => version),
  ]);
}

/** Locks leases and jobs in the order in which records of steps lock them. */
const MOVE_RECHECKS = `
with moved as (
  select * from unnest($1::uuid[], $2::bigint[], $3::int[], $4::bigint[], $5::bigint[])
    as m (uid, at_ms, bucket, epoch, version)
), lease as (
  select bucket, epoch from bucket_leases
   where (bucket, epoch) in (select bucket, epoch from moved)
   order by bucket
     for key share
), job as (
  select j.uid, m.at_ms
    from jobs j join moved m on m.uid = j.uid and m.version = j.version
   where (m.bucket, m.epoch) in (select bucket, epoch from lease) and j.recheck_at_ms is distinct from m.at_ms
   order by j.uid
     for no key update of j
)
update jobs j set recheck_at_ms = job.at_ms from job where j.uid = job.uid`;
