import { admitted } from "../../job/admission/admitted.ts";
import { CLUSTER_LOST, undone } from "../../job/admission/undone.ts";
import { clusterWords } from "../../job/cluster-text.ts";
import type { JobEvent } from "../../job/event.ts";
import { isDraining, isEvicted, isMoving, isSuspended, type Job, liveAdmission, shrinksTo } from "../../job/job.ts";
import type { PlannedRun } from "../../job/placement/placement.ts";
import { reasonFor } from "../../job/reason-for.ts";
import { memberCount, replicaKey } from "../../job/roles.ts";
import { isSetAside } from "../../job/set-aside.ts";
import { totalReplicas } from "../../job/spec.ts";
import { type Admission, type Eviction, isTerminal } from "../../job/status.ts";
import { elasticRolesOf } from "../../kinds/kind.ts";
import type { Registry } from "../../kinds/registry.ts";
import type { PlannedAdmission, Refusal } from "../model/plan-types.ts";
import { recordedMessage } from "./recorded-message.ts";

/** A job before and after a part of a plan was applied to it, and the event that says so. */
type AppliedPlan = { readonly before: Job; readonly after: Job; readonly event: JobEvent };

export type AppliedAdmission = AppliedPlan & {
  readonly admission: Admission;
  /** Of a gang that moves: the admission that this one takes the place of, as it is now, and the event about it. */
  readonly left?: { readonly admission: Admission; readonly event: JobEvent };
};

/**
 * Applies a planned admission, growth, or repair to the job as it is now. Null if it is too late: for an admission, if
 * the job no longer waits, is set aside, or an older admission still holds tokens; for one of a gang that moves, if it
 * is to stay where it is; for the others, if that admission is no longer live, or the job is set aside.
 */
export function applyAdmission(job: Job, planned: PlannedAdmission, at: AppliedAt): AppliedAdmission | null {
  switch (planned.kind) {
    case "admit":
      return admit(job, planned, at);
    case "grow":
      return grow(job, planned);
    case "repair":
      return repair(job, planned);
  }
}

type AppliedAt = {
  readonly kinds: Registry;
  readonly nowMs: number;
  /** Of a new admission. Omitted: the planned one is a growth or a repair. */
  readonly fence?: string | undefined;
};

function admit(before: Job, planned: PlannedAdmission, at: AppliedAt) {
  const { movesFrom } = planned;
  if (movesFrom === undefined) return before.status.phase === "WAITING" ? enter(before, before, planned, at) : null;
  const left = leave(before, movesFrom, at.nowMs);
  const entered = left === null ? null : enter(before, left.after, planned, at);
  return left === null || entered === null ? null : { ...entered, left };
}

/** Undoes the live admission of a gang that moves. It has left its tokens and its pods. Null: it stays there. */
function leave(job: Job, number: number, nowMs: number) {
  const live = liveAdmission(job);
  if (live?.number !== number || !isMoving(job) || isEvicted(job)) return null;
  const where = clusterWords({ ...live, name: live.cluster ?? "" });
  const message = `Admission ${number} to ${where} is undone: the cluster counts as lost, and the gang runs elsewhere.`;
  const { ended: _over, lastEndMs: _past, ...stopped } = live;
  // The tokens are those of the next admission. Pods may have been created until now.
  const times = { abandonedMs: nowMs, tokensReleasedMs: nowMs, belowMinSinceMs: nowMs };
  const admission: Admission = { ...stopped, state: "undone", ...times };
  const { move: _moved, shrink: _shrunk, podProblems: _shown, startProblem: _known, ...status } = job.status;
  const after = {
    ...job,
    status: undone(status, { reason: CLUSTER_LOST, message }, nowMs),
    admissions: job.admissions.map((one) => (one === live ? admission : one)),
  };
  const event: JobEvent = { type: "Warning", reason: reasonFor(job.spec.kind, CLUSTER_LOST), message };
  return { after, admission, event };
}

/** Gives a job an admission. */
function enter(before: Job, job: Job, planned: PlannedAdmission, { kinds, nowMs, fence }: AppliedAt) {
  if (isSuspended(job) || isSetAside(job) || isDraining(job)) return null;
  const admission: Admission = {
    number: planned.admission,
    cluster: planned.cluster,
    ...(planned.simulated ? { simulated: true } : {}),
    admitTimeMs: nowMs,
    ...(fence === undefined ? {} : { fence }),
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
  return { before, after, admission, event };
}

/** The rule for a gang that is not elastic and is admitted without some of its members. */
function partialOf({ spec }: Job, { members }: PlannedAdmission, kinds: Registry): Pick<Admission, "partial" | "told"> {
  if (memberCount(members) === totalReplicas(spec)) return {};
  if (elasticRolesOf(kinds.kindOf(spec.kind), spec).length > 0) return {};
  const { partial = "KEEP" } = spec.runPolicy.schedulingPolicy;
  return partial === "KEEP" ? { partial } : { partial, told: members };
}

/** The admission that a growth or a repair is for. Null: it is too late for that. */
function changeable(job: Job, planned: PlannedAdmission): Admission | null {
  const live = job.admissions.find((admission) => admission.number === planned.admission);
  if (live?.state !== "live" || live.cluster !== planned.cluster) return null;
  return isEvicted(job) || isSetAside(job) ? null : live;
}

/** The planned nodes are recorded beside the admission, which stays as it is. */
function repair(job: Job, planned: PlannedAdmission) {
  const admission = changeable(job, planned);
  if (admission === null) return null;
  const { runs = [] } = planned;
  const event: JobEvent = {
    type: "Normal",
    reason: "PodsReplanned",
    message: `Other nodes are planned for ${membersText(runs)}, since the planned ones did not take their pods.`,
  };
  return { before: job, after: { ...job, version: job.version + 1 }, admission, event };
}

/** Names the first of some members: `member Worker/3 and 2 more`. */
function membersText(runs: readonly PlannedRun[]): string {
  const [first] = runs;
  const more = runs.length - 1;
  const named = first === undefined ? "members" : replicaKey(first.role, first.first);
  return more <= 0 ? `member ${named}` : `member ${named} and ${more} more`;
}

function grow(job: Job, planned: PlannedAdmission) {
  const live = changeable(job, planned);
  if (live === null || shrinksTo(job) !== null) return null;
  const admission = { ...live, members: planned.members };
  const admissions = job.admissions.map((other) => (other === live ? admission : other));
  const { kind } = job.spec;
  const size = memberCount(planned.members);
  const where = clusterWords({ ...live, name: live.cluster ?? "" });
  const event: JobEvent = {
    type: "Normal",
    reason: reasonFor(kind, "Grown"),
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
