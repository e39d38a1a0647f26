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

/** Moves only the time to look again. Does nothing if the job has another version: its change has set the time. */
export async function recheckAt(
  executor: Executor,
  jobUid: string,
  atMs: number | null,
  lease: BucketLease,
  version: number,
): Promise<void> {
  await executor.query(RECHECK_AT, [jobUid, atMs, lease.bucket, lease.epoch, version]);
}

const RECHECK_AT = `
with lease as (
  select 1 from bucket_leases where bucket = $3 and epoch = $4 for key share
)
update jobs set recheck_at_ms = $2
 where uid = $1 and version = $5 and recheck_at_ms is distinct from $2 and exists (select from lease)`;
