import { applyEviction } from "../../../core/plan/apply-plan.ts";
import type { PlannedEviction } from "../../../core/plan/plan-types.ts";
import type { Db, Executor } from "../db/db.ts";
import { holdsLease, PLANNER_LEASE } from "../fleet/leases.ts";
import { appendChanges } from "../jobs/append.ts";
import { JOB_READING, type JobRow } from "../jobs/job-row.ts";
import { type ChangeTime, updateJobs } from "../jobs/write-job.ts";
import { lockQueues } from "./lock-queues.ts";

/**
 * Requests in one transaction that these admissions are undone, for the workers to carry out. Leaves out those that are
 * no longer live, and those of queues that no longer drain. Returns the jobs whose request is recorded. Does nothing if
 * another planner has the lease.
 */
export function recordEvictions(
  db: Db,
  evictions: readonly PlannedEviction[],
  plannerEpoch: number,
  at: ChangeTime,
): Promise<readonly string[]> {
  return db.tx(async (tx) => {
    if (!(await holdsLease(tx, { name: PLANNER_LEASE, epoch: plannerEpoch }))) return [];
    const stopOf = await lockQueues(
      tx,
      evictions.map(({ queue }) => queue),
    );
    const draining = evictions.filter(({ queue }) => stopOf(queue)?.drains === true);
    return draining.length === 0 ? [] : evict(tx, draining, at);
  });
}

async function evict(tx: Executor, evictions: readonly PlannedEviction[], at: ChangeTime): Promise<readonly string[]> {
  const uids = evictions.map(({ jobUid }) => jobUid);
  await tx.query(LOCK_JOBS, [uids]);
  // A second statement: the first one has read the admissions as they were before it locked the jobs.
  const rows = await tx.query<JobRow>(READ_JOBS, [uids]);
  const jobs = new Map(rows.map((row) => [row.uid, JOB_READING.BASIC.jobOf(row)]));
  const changes = evictions.flatMap((eviction) => {
    const before = jobs.get(eviction.jobUid);
    const after = before === undefined ? null : applyEviction(before, eviction);
    return before === undefined || after === null ? [] : [{ before, after, recheckAtMs: at.nowMs, events: [] }];
  });
  if (changes.length === 0) return [];
  await updateJobs(tx, changes, at.kinds);
  await appendChanges(tx, changes, at.nowMs);
  return changes.map(({ after }) => after.uid);
}

const LOCK_JOBS = "select 1 from jobs j where j.uid = any($1::uuid[]) order by j.uid for no key update";

const READ_JOBS = `select ${JOB_READING.BASIC.columns} from jobs j where j.uid = any($1::uuid[])`;
