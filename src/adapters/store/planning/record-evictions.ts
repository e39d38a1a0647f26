import { liveAdmission } from "../../../core/job/job.ts";
import { applyEviction } from "../../../core/plan/apply/apply-plan.ts";
import type { PlannedEviction } from "../../../core/plan/model/plan-types.ts";
import { frozenPools } from "../admin/freezes.ts";
import { type Db, type Executor, undoable } from "../db/db.ts";
import { holdsLease, PLANNER_LEASE } from "../fleet/leases.ts";
import { appendChanges } from "../jobs/append.ts";
import { type ChangeTime, updateJobs } from "../jobs/write-job.ts";
import { lockJobs } from "./lock-jobs.ts";
import { lockQueues } from "./lock-queues.ts";

/**
 * Requests in one transaction that these admissions are undone, for the workers to carry out. Leaves out those that are
 * no longer live, those of queues that no longer drain, and jobs that another transaction has locked. Returns the jobs
 * whose request is recorded. Does nothing if another planner has the lease, or if a pool was frozen meanwhile that an
 * admission uses.
 */
export function recordEvictions(
  db: Db,
  evictions: readonly PlannedEviction[],
  plannerEpoch: number,
  at: ChangeTime,
): Promise<readonly string[]> {
  return undoable<readonly string[]>(db, async (tx, undo) => {
    if (!(await holdsLease(tx, { name: PLANNER_LEASE, epoch: plannerEpoch }))) return [];
    const stopOf = await lockQueues(
      tx,
      evictions.map(({ queue }) => queue),
    );
    const draining = evictions.filter(({ queue }) => stopOf(queue)?.drains === true);
    return draining.length === 0 ? [] : evict(tx, draining, { at, undo });
  });
}

async function evict(
  tx: Executor,
  evictions: readonly PlannedEviction[],
  { at, undo }: { readonly at: ChangeTime; readonly undo: (outcome: readonly string[]) => never },
): Promise<readonly string[]> {
  const jobs = await lockJobs(
    tx,
    evictions.map(({ jobUid }) => jobUid),
  );
  const changes = evictions.flatMap(({ jobUid, admission, reason, message }) => {
    const before = jobs.get(jobUid)?.job;
    const after = before === undefined ? null : applyEviction(before, { admission, reason, message });
    return before === undefined || after === null ? [] : [{ before, after, recheckAtMs: at.nowMs, events: [] }];
  });
  if (changes.length === 0) return [];
  await updateJobs(tx, changes, at.kinds);
  await appendChanges(tx, changes, at.nowMs);
  const pools = changes.flatMap(({ before }) => Object.values(liveAdmission(before)?.flavors ?? {}));
  if ((await frozenPools(tx, pools)).size > 0) undo([]);
  return changes.map(({ after }) => after.uid);
}
