import type { Job } from "../../../core/job/job.ts";
import type { Executor } from "../db/db.ts";
import { JOB_READING, type JobRow } from "../jobs/job-row.ts";

/** A job that is locked until the transaction ends, and the state of its gang. */
export type LockedJob = {
  /** Without templates. */
  readonly job: Job;
  readonly generation: number;
  /** Null: the columns of the gang are those of an older version of the job. */
  readonly askHash: string | null;
};

/**
 * Locks jobs and reads them, by uid. Skips jobs that another transaction has locked: it is about to change them, and
 * the planner plans again.
 */
export async function lockJobs(tx: Executor, uids: readonly string[]): Promise<ReadonlyMap<string, LockedJob>> {
  const locked = await tx.query<{ uid: string }>(LOCK_JOBS, [uids]);
  if (locked.length === 0) return new Map();
  // A second statement: the first one has read the admissions as they were before it locked the jobs.
  const rows = await tx.query<LockedRow>(READ_JOBS, [locked.map(({ uid }) => uid)]);
  return new Map(
    rows.map((row) => [
      row.uid,
      { job: JOB_READING.BASIC.jobOf(row), generation: row.generation, askHash: row.ask_hash },
    ]),
  );
}

const LOCK_JOBS = `
select j.uid from jobs j where j.uid = any($1::uuid[]) order by j.uid for no key update of j skip locked`;

type LockedRow = JobRow & { readonly generation: number; readonly ask_hash: string | null };

const READ_JOBS = `
select ${JOB_READING.BASIC.columns}, j.generation, case when j.gang_version = j.version then j.ask_hash end as ask_hash
  from jobs j where j.uid = any($1::uuid[])`;
