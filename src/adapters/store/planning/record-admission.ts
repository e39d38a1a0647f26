import type { Job } from "../../../core/job/job.ts";
import type { Registry } from "../../../core/kinds/registry.ts";
import { applyAdmission } from "../../../core/plan/apply-plan.ts";
import type { AdmissionRecord, AdmitOutcome, PlannedAdmission } from "../../../core/plan/plan-types.ts";
import { type Db, type Executor, undoable } from "../db/db.ts";
import { holdsLease, PLANNER_LEASE } from "../fleet/leases.ts";
import { appendChanges } from "../jobs/append.ts";
import { loadJob } from "../jobs/load-job.ts";
import { updateJob, writeAdmissions } from "../jobs/write-job.ts";
import { commitGrantsIn } from "../ledger/commit-grants.ts";
import { QUEUES_DOMAIN } from "../ledger/quota-domains.ts";
import type { LimitBounds } from "../ledger/quota-limits.ts";

/**
 * Records an admission or a growth of a gang: its admission, ledger, status, log and event, or nothing. All
 * transactions lock rows in one order: lease, job, cluster, domain, sums.
 */
export function recordAdmission(
  db: Db,
  record: AdmissionRecord,
  { bounds, kinds }: { readonly bounds: LimitBounds; readonly kinds: Registry },
): Promise<AdmitOutcome> {
  return undoable<AdmitOutcome>(db, async (tx, undo) => {
    const applied = await lockAndApply(tx, record);
    if (applied === null) return undo("stale");
    const { before, after, admission, event } = applied;
    await writeAdmissions(tx, [{ jobUid: after.uid, admission }]);
    await updateJob(tx, { before, after, recheckAtMs: record.nowMs }, kinds);
    await tx.query("delete from refusals where job_uid = $1", [after.uid]);
    await appendChanges(tx, [{ before, after, events: [event] }], record.nowMs);
    // Last, because all other grants wait while the domain is locked.
    const granted = await grant(tx, record, bounds);
    return granted === "recorded" ? granted : undo(granted);
  });
}

/** Locks every row that guards the admission until the transaction ends. Null if one of them has moved on. */
async function lockAndApply(tx: Executor, record: AdmissionRecord) {
  const { planned } = record;
  if (!(await holdsLease(tx, { name: PLANNER_LEASE, epoch: record.plannerEpoch }))) return null;
  const job = await lockPlannedJob(tx, planned);
  const applied = job && applyAdmission(job, planned, record.nowMs);
  if (applied === null || !(await raiseCounter(tx, planned))) return null;
  if (planned.kind === "admit" && !(await enterCluster(tx, planned))) return null;
  return applied;
}

async function grant(tx: Executor, record: AdmissionRecord, bounds: LimitBounds): Promise<AdmitOutcome> {
  const { planned, allocations, fence, quotaEpoch, nowMs } = record;
  if (allocations.length === 0) return "recorded";
  if (fence === null)
    throw new Error(`the planner sent allocations of job ${planned.jobUid} without the fence of their grant`);
  const holder = { kind: "admission" as const, jobUid: planned.jobUid, admission: planned.admission };
  const request = { domain: QUEUES_DOMAIN, epoch: quotaEpoch, grants: [{ allocations, holder, fence }], nowMs };
  const [outcome] = await commitGrantsIn(tx, request, bounds);
  if (outcome?.kind === "committed") return "recorded";
  return outcome?.kind === "epochMoved" ? "stale" : "refusedByLedger";
}

/** Locks the job's row and reads the job. Null if the job has moved on since it was planned. */
async function lockPlannedJob(tx: Executor, planned: PlannedAdmission): Promise<Job | null> {
  const locked = await tx.query(LOCK_JOB, [planned.jobUid, planned.jobVersion]);
  return locked.length === 0 ? null : ((await loadJob(tx, planned.jobUid))?.job ?? null);
}

const LOCK_JOB = `
select 1 from jobs where uid = $1 and version = $2 and cancel is null and delete_ms is null
   for no key update`;

/**
 * Counts this admission to the cluster. False if another admission came first, or if the cluster is cordoned now. A job
 * without pods enters no cluster.
 */
async function raiseCounter(tx: Executor, planned: PlannedAdmission): Promise<boolean> {
  if (planned.cluster === null) return true;
  const rows = await tx.query(RAISE_COUNTER, [planned.cluster, planned.admissionCounter]);
  return rows.length === 1;
}

const RAISE_COUNTER = `
update clusters set admission_counter = admission_counter + 1
 where name = $1 and admission_counter = $2 and not cordoned
returning 1`;

/**
 * Notes that objects of the admission may be in the cluster from now on. False while objects of an older admission may
 * be there. False also if the job ever had an admission of that number: objects of an older number are never adopted.
 */
async function enterCluster(tx: Executor, planned: PlannedAdmission): Promise<boolean> {
  const rows = await tx.query(ENTER_CLUSTER, [planned.jobUid, planned.admission, planned.cluster ?? ""]);
  return rows.length === 1;
}

const ENTER_CLUSTER = `
insert into admission_clusters (job_uid, admission, cluster)
select $1, $2, $3
 where not exists (select from admission_clusters where job_uid = $1 and cluster = $3)
   and not exists (select from admissions where job_uid = $1 and number >= $2)
returning 1`;
