import { admitted } from "../../job/admitted.ts";
import { clusterWords } from "../../job/cluster-text.ts";
import type { JobEvent } from "../../job/event.ts";
import { isDraining, isEvicted, isSuspended, type Job, liveAdmission, shrinksTo } from "../../job/job.ts";
import { memberCount } from "../../job/roles.ts";
import { isSetAside } from "../../job/set-aside.ts";
import { totalReplicas } from "../../job/spec.ts";
import { type Admission, type Eviction, isTerminal } from "../../job/status.ts";
import { elasticRolesOf } from "../../kinds/kind.ts";
import type { Registry } from "../../kinds/registry.ts";
import type { PlannedAdmission, Refusal } from "../model/plan-types.ts";
import { recordedMessage } from "./recorded-message.ts";

/** A job before and after a part of a plan was applied to it, and the event that says so. */
type AppliedPlan = { readonly before: Job; readonly after: Job; readonly event: JobEvent };

export type AppliedAdmission = AppliedPlan & { readonly admission: Admission };

/**
 * Applies a planned admission, or growth, to the job as it is now. Null if it is too late: for an admission, if the job
 * no longer waits, is set aside, or an older admission still holds tokens; for a growth, if that admission is no longer
 * live, or the job is set aside.
 */
export function applyAdmission(job: Job, planned: PlannedAdmission, at: AppliedAt): AppliedAdmission | null {
  return planned.kind === "admit" ? admit(job, planned, at) : grow(job, planned);
}

type AppliedAt = { readonly kinds: Registry; readonly nowMs: number };

function admit(job: Job, planned: PlannedAdmission, { kinds, nowMs }: AppliedAt) {
  if (job.status.phase !== "WAITING" || isSuspended(job) || isSetAside(job) || isDraining(job)) return null;
  const admission: Admission = {
    number: planned.admission,
    cluster: planned.cluster,
    ...(planned.simulated ? { simulated: true } : {}),
    admitTimeMs: nowMs,
    members: planned.members,
    ...partialOf(job, planned, kinds),
    flavors: planned.flavors,
    flavorLabels: planned.flavorLabels,
    state: "live",
    tokensReleasedMs: null,
    goneMs: null,
    belowMinSinceMs: nowMs,
  };
  const { status, event } = admitted(job, admission, nowMs);
  const after = { ...job, status, admissions: [...job.admissions, admission], version: job.version + 1 };
  return { before: job, after, admission, event };
}

/** The rule for a gang that is not elastic and is admitted without some of its members. */
function partialOf({ spec }: Job, { members }: PlannedAdmission, kinds: Registry): Pick<Admission, "partial" | "told"> {
  if (memberCount(members) === totalReplicas(spec)) return {};
  if (elasticRolesOf(kinds.kindOf(spec.kind), spec).length > 0) return {};
  const { partial = "KEEP" } = spec.runPolicy.schedulingPolicy;
  return partial === "KEEP" ? { partial } : { partial, told: members };
}

function grow(job: Job, planned: PlannedAdmission) {
  const live = job.admissions.find((admission) => admission.number === planned.admission);
  if (live?.state !== "live" || live.cluster !== planned.cluster) return null;
  if (isEvicted(job) || isSetAside(job) || shrinksTo(job) !== null) return null;
  const admission = { ...live, members: planned.members };
  const admissions = job.admissions.map((other) => (other === live ? admission : other));
  const { kind } = job.spec;
  const size = memberCount(planned.members);
  const where = clusterWords({ ...live, name: live.cluster ?? "" });
  const event: JobEvent = {
    type: "Normal",
    reason: `${kind}Grown`,
    message: `${kind} ${job.name} has grown to ${size} members in ${where}.`,
  };
  return { before: job, after: { ...job, admissions, version: job.version + 1 }, admission, event };
}

/** Applies a refusal to the job that it was planned for: its status says why the job waits. */
export function applyRefusal(job: Job, refusal: Refusal, nowMs: number): AppliedPlan {
  const { reason, message } = refusal;
  const status = { ...job.status, waiting: { reason, message: recordedMessage(refusal), sinceMs: nowMs } };
  return {
    before: job,
    after: { ...job, status, version: job.version + 1 },
    event: { type: "Normal", reason, message },
  };
}

/**
 * Requests that an admission of the job is undone. Null if it is too late: the admission is no longer live, its
 * eviction was requested before, or the job ends or is suspended anyway.
 */
export function applyEviction(job: Job, eviction: Eviction): Job | null {
  const isLeaving = isTerminal(job.status) || job.cancel !== null || job.deleteTimeMs !== null || isSuspended(job);
  if (isLeaving || isEvicted(job) || liveAdmission(job)?.number !== eviction.admission) return null;
  return { ...job, status: { ...job.status, eviction }, version: job.version + 1 };
}
