import { admitted } from "../../core/job/admitted.ts";
import { isDraining, type Job } from "../../core/job/job.ts";
import { memberCount } from "../../core/job/roles.ts";
import type { Admission } from "../../core/job/status.ts";
import type { PlannedAdmission } from "../../core/plan/plan-types.ts";
import type { AllocationLine } from "../../core/quota/counters.ts";
import type { JobEvent } from "../../core/reconcile/decision.ts";
import { appendChanges } from "./append.ts";
import { commitGrantsIn } from "./commit-grants.ts";
import { type Db, type Executor, undoable } from "./db.ts";
import { holdsLease, PLANNER_LEASE } from "./leases.ts";
import { loadJob } from "./load-job.ts";
import { QUEUES_DOMAIN } from "./quota-domains.ts";
import type { LimitBounds } from "./quota-limits.ts";
import { updateJob, writeAdmissions } from "./write-job.ts";

export type AdmitOutcome = "recorded" | "stale" | "refusedByLedger";

export type AdmissionRecord = {
  readonly planned: PlannedAdmission;
  readonly lines: readonly AllocationLine[];
  readonly fence: bigint | null;
  readonly quotaEpoch: number;
  readonly plannerEpoch: number;
  readonly nowMs: number;
};

/**
 * Records that a gang boards, or grows: admission, ledger, status, log and event, or nothing. Rows are taken in one order by everybody: lease,
 * job, cluster, domain, sums.
 */
export function recordAdmission(db: Db, record: AdmissionRecord, bounds: LimitBounds): Promise<AdmitOutcome> {
  return undoable<AdmitOutcome>(db, async (tx, undo) => {
    const next = await take(tx, record);
    if (next === null) return undo("stale");
    await writeAdmissions(tx, next.job.uid, [next.admission]);
    await updateJob(tx, next.job, record.nowMs);
    await tx.query("delete from refusals where job_uid = $1", [next.job.uid]);
    await appendChanges(tx, [{ before: next.before, after: next.job, events: [next.event] }], record.nowMs);
    // Last, because everybody else's grants wait while the domain is taken.
    const granted = await grant(tx, record, bounds);
    return granted === "recorded" ? granted : undo(granted);
  });
}

/** Takes every row that guards the admission, until the transaction ends; null where one of them has moved on. */
async function take(tx: Executor, record: AdmissionRecord): Promise<Next | null> {
  const { planned } = record;
  if (!(await holdsLease(tx, { name: PLANNER_LEASE, epoch: record.plannerEpoch }))) return null;
  const job = await lockPlannedJob(tx, planned);
  const next = job && nextOf(job, planned, record.nowMs);
  if (next === null || !(await takeCluster(tx, planned))) return null;
  if (planned.kind === "admit" && !(await enterCluster(tx, planned))) return null;
  return next;
}

async function grant(tx: Executor, record: AdmissionRecord, bounds: LimitBounds): Promise<AdmitOutcome> {
  const { planned, lines, fence, quotaEpoch, nowMs } = record;
  if (lines.length === 0) return "recorded";
  if (fence === null) throw new Error("lines were granted without a fence");
  const holder = { kind: "admission" as const, jobUid: planned.jobUid, admission: planned.admission };
  const request = { domain: QUEUES_DOMAIN, epoch: quotaEpoch, grants: [{ lines, holder, fence }], nowMs };
  const [outcome] = await commitGrantsIn(tx, request, bounds);
  if (outcome?.kind === "committed") return "recorded";
  return outcome?.kind === "epochMoved" ? "stale" : "refusedByLedger";
}

/** The job, its row locked; null where it moved on since it was planned. */
async function lockPlannedJob(tx: Executor, planned: PlannedAdmission): Promise<Job | null> {
  const locked = await tx.query(LOCK_JOB, [planned.jobUid, planned.jobVersion]);
  return locked.length === 0 ? null : ((await loadJob(tx, planned.jobUid))?.job ?? null);
}

const LOCK_JOB = `
select 1 from jobs where uid = $1 and version = $2 and cancel is null and delete_ms is null
   for no key update`;

type Next = {
  readonly before: Job;
  readonly job: Job;
  readonly admission: Admission;
  readonly event: JobEvent;
};

function nextOf(job: Job, planned: PlannedAdmission, nowMs: number): Next | null {
  return planned.kind === "admit" ? boarding(job, planned, nowMs) : growth(job, planned);
}

/** Null where the job does not wait, or an older admission still holds tokens. */
function boarding(job: Job, planned: PlannedAdmission, nowMs: number): Next | null {
  if (job.status.phase !== "WAITING" || job.spec.runPolicy.suspend === true || isDraining(job)) return null;
  const admission: Admission = {
    number: planned.admission,
    cluster: planned.cluster,
    admitTimeMs: nowMs,
    members: planned.members,
    flavors: planned.flavors,
    nodeLabels: planned.nodeLabels,
    state: "live",
    tokensReleasedMs: null,
    goneMs: null,
    belowMinSinceMs: nowMs,
  };
  const { status, event } = admitted(job, admission, nowMs);
  const after = { ...job, status, admissions: [...job.admissions, admission], version: job.version + 1 };
  return { before: job, job: after, admission, event };
}

/** Null where that admission is not live any more. */
function growth(job: Job, planned: PlannedAdmission): Next | null {
  const live = job.admissions.find((admission) => admission.number === planned.admission);
  if (live?.state !== "live" || live.cluster !== planned.cluster) return null;
  const admission = { ...live, members: planned.members };
  const admissions = job.admissions.map((other) => (other === live ? admission : other));
  const event: JobEvent = {
    type: "Normal",
    reason: `${job.spec.kind}Grown`,
    message: `${job.spec.kind} ${job.name} has grown to ${memberCount(planned.members)} members in cluster ${live.cluster}.`,
  };
  return { before: job, job: { ...job, admissions, version: job.version + 1 }, admission, event };
}

/** Counts this admission to the cluster; false where another came first, or the cluster is cordoned now. A job without pods enters none. */
async function takeCluster(tx: Executor, planned: PlannedAdmission): Promise<boolean> {
  if (planned.cluster === "") return true;
  const rows = await tx.query(TAKE_CLUSTER, [planned.cluster, planned.admissionCounter]);
  return rows.length === 1;
}

const TAKE_CLUSTER = `
update clusters set admission_counter = admission_counter + 1
 where name = $1 and admission_counter = $2 and not cordoned
returning 1`;

/**
 * Notes that something of the admission may be in the cluster from now on; false while something of an older one may be, or where the job
 * ever had an admission of that number: what carries an older number is never adopted.
 */
async function enterCluster(tx: Executor, planned: PlannedAdmission): Promise<boolean> {
  const rows = await tx.query(ENTER_CLUSTER, [planned.jobUid, planned.admission, planned.cluster]);
  return rows.length === 1;
}

const ENTER_CLUSTER = `
insert into admission_clusters (job_uid, admission, cluster)
select $1, $2, $3
 where not exists (select from admission_clusters where job_uid = $1 and cluster = $3)
   and not exists (select from admissions where job_uid = $1 and number >= $2)
returning 1`;
