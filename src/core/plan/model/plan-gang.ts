import { canonicalJson } from "../../../runtime/json.ts";
import { isInterruptible } from "../../job/interruptible.ts";
import {
  awaitsResult,
  isEvicted,
  isHistory,
  isMoving,
  isSuspended,
  type Job,
  liveAdmission,
  shrinksTo,
} from "../../job/job.ts";
import { nominationOf } from "../../job/nomination.ts";
import type { Placement } from "../../job/placement/placement.ts";
import type { Nomination } from "../../job/preemption.ts";
import { waitsSinceMs } from "../../job/request/list.ts";
import type { Admission, JobStatus, RepairRequest } from "../../job/status.ts";
import type { Registry } from "../../kinds/registry.ts";
import { type Ask, askOf, type HashedAsk, hashedAsk } from "./ask.ts";
import type { MemberCounts } from "./gang.ts";

/** The facts of a gang that documents of its job's record have: of its spec and its status. */
export type DocumentedFacts = {
  readonly suspended: boolean;
  /** Why the job is set aside: it is not admitted and does not grow. Omitted: it is not set aside. */
  readonly setAside?: string;
  /** Why the job waits for another job's result. Null: it does not. */
  readonly awaitsResult: string | null;
  /** After an undone admission. Null: none was undone lately. */
  readonly backoff: JobStatus["backoff"];
  /** When it was created, or when its last admission ended. */
  readonly waitsSinceMs: number;
  /** True: its live admission is to be undone. Omitted: it is not. */
  readonly evicted?: true;
  /** The members that it keeps once it has given up others. Omitted: it keeps all. */
  readonly shrinksTo?: MemberCounts;
  /** True: its cluster is lost, and it runs elsewhere once it fits there. Omitted: it stays where it is. */
  readonly moves?: true;
  /** True: it would restart as a whole if it grew, and members gave their tokens back. Omitted: it may grow. */
  readonly growsNoMore?: true;
  /** True: no other gang is preempted for it. Omitted: the policies of its queue hold. */
  readonly neverPreempts?: true;
  /** How often it was preempted. Omitted: never. */
  readonly preemptions?: number;
  /**
   * The digest of its tree when it was preempted last, or when another gang took its place as a nominee. Omitted:
   * never, or before this was recorded.
   */
  readonly preemptedIn?: string;
  /** After so many preemptions it is protected. Omitted: as its queue says. */
  readonly maxPreemptions?: number;
  /** Its admission ends so long after it began. Omitted: nobody knows when it ends. */
  readonly maxRuntimeMs?: number;
  /** True: it may be admitted on what is kept for a reservation, and be taken back. Omitted: false. */
  readonly backfill?: true;
  /** The gangs that are preempted for it. Omitted: none is. */
  readonly nomination?: Nomination;
};

/** The part of an admission that a plan reads. */
export type PlannedFrom = Pick<
  Admission,
  | "number"
  | "admitTimeMs"
  | "cluster"
  | "state"
  | "members"
  | "flavors"
  | "flavorLabels"
  | "tokensReleasedMs"
  | "goneMs"
  | "returned"
  | "repair"
> & {
  /** The nodes that its members are planned on. Omitted: none are. */
  readonly placement?: Placement;
};

/** A job as the planner sees it, without its templates. */
export type PlanGang = DocumentedFacts & {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly project: string;
  readonly queue: string;
  readonly priority: number;
  readonly createTimeMs: number;
  /** The version of the job's record. Rises also with changes that a plan does not read. */
  readonly version: number;
  /** Rises with every change of this gang, except one of the version alone. */
  readonly generation: number;
  readonly askHash: string;
  /** Gangs with one hash share one object. */
  readonly ask: Ask;
  /** True in phase WAITING, unless the job's end was requested. */
  readonly waits: boolean;
  /** True if the job's cancellation or deletion was requested. */
  readonly ends: boolean;
  /** The trace context of the call that created the job. Omitted: not traced. */
  readonly traceParent?: string;
  /** The admissions that are not history, oldest first. */
  readonly admissions: readonly PlannedFrom[];
  /** The highest number of an admission that the job ever had, also of one that is history. 0: it had none. */
  readonly lastAdmission: number;
};

/**
 * The tokens that a nominee holds for its next admission, by pool. The use of its queue, project and namespace counts
 * them. Its admission takes them over, so that it asks for the rest of what it needs only.
 */
export type GangHolds = {
  /** The number of the admission that they are for. They are of no use for another one. */
  readonly admission: number;
  readonly amounts: Readonly<Record<string, number>>;
};

/** The gang of a job after a change. */
export type GangUpdate = {
  readonly uid: string;
  /** The `gangVersion`; above all others once the job's record is gone. An update older than a known one is late. */
  readonly version: number;
  /** Null: the planner has nothing to do with the job any more, or its record is gone. */
  readonly gang: PlanGang | null;
};

/** Rises with every change of a job's record, and each time that its gang is computed again. */
export function gangVersion({ version, generation }: Pick<PlanGang, "version" | "generation">): number {
  return version + generation;
}

/** True for a gang that waits, runs or holds tokens. */
export function isPlanned(gang: Pick<PlanGang, "waits" | "admissions">): boolean {
  return gang.waits || isHolder(gang);
}

/** True for a gang with an admission that is live or holds tokens. */
export function isHolder({ admissions }: Pick<PlanGang, "admissions">): boolean {
  return admissions.some(({ state, tokensReleasedMs }) => state === "live" || tokensReleasedMs === null);
}

/** The members of an admission that still wait for other nodes. Null: none do. */
export function repairOf({ state, repair, placement }: PlannedFrom): RepairRequest | null {
  return state === "live" && repair !== undefined && repair.version === placement?.version ? repair : null;
}

/** True for a gang that takes capacity or quota from others: it runs, holds tokens, or others are preempted for it. */
export function takesFromOthers(gang: Pick<PlanGang, "admissions" | "nomination">): boolean {
  return isHolder(gang) || gang.nomination !== undefined;
}

/** The facts of a gang that its job's record does not have. */
export type GangCounters = Pick<PlanGang, "generation" | "lastAdmission">;

/** A job as the planner sees it. */
export function gangOf(job: Job, kinds: Registry, counters: GangCounters): PlanGang {
  return askingGang(job, hashedAsk(job, kinds), counters);
}

/** The same for a job whose ask is known. */
export function askingGang(job: Job, { hash, ask }: HashedAsk, counters: GangCounters): PlanGang {
  return { ...recordFacts(job), ...counters, version: job.version, ask, askHash: hash };
}

/** The effect of a job's change on its gang. */
export type GangChange = {
  /** True if any fact of the gang changed but the version. */
  readonly changed: boolean;
  /** The new ask. Null: the ask stays. */
  readonly ask: Ask | null;
};

export function gangChange(before: Job, after: Job, kinds: Registry): GangChange {
  const ask = newAsk(before, after, kinds);
  const changed = ask !== null || canonicalJson(recordFacts(before)) !== canonicalJson(recordFacts(after));
  return { ask, changed };
}

function newAsk(before: Job, after: Job, kinds: Registry): Ask | null {
  const interrupts = [before, after].map(({ spec, status }) => isInterruptible(spec, status.attempts));
  // Most changes of a job leave its spec as it is. So they need not read its templates.
  const isSame = before.spec === after.spec && interrupts[0] === interrupts[1];
  if (isSame && before.status.backoff?.whole === after.status.backoff?.whole) return null;
  const ask = askOf(after, kinds);
  return canonicalJson(ask) === canonicalJson(askOf(before, kinds)) ? null : ask;
}

export function documentedFacts(job: Job): DocumentedFacts {
  const { waiting, backoff, preemptedIn } = job.status;
  const { preemptions = 0 } = job.status.attempts;
  const { maxPreemptions } = job.spec.runPolicy.schedulingPolicy;
  const { maxRuntimeMs, backfill } = job.spec.runPolicy;
  const nomination = nominationOf(job);
  const looked = waiting?.reason === "WaitingForCache" ? waiting.message : "earlier results are looked for";
  return {
    ...heldFacts(job),
    awaitsResult: awaitsResult(job) ? looked : null,
    backoff,
    waitsSinceMs: waitsSinceMs(job),
    ...leavingFacts(job),
    ...(job.spec.preemptionPolicy === "NEVER" ? { neverPreempts: true as const } : {}),
    ...(preemptions === 0 ? {} : { preemptions }),
    ...(preemptedIn === undefined ? {} : { preemptedIn }),
    ...(maxPreemptions === undefined ? {} : { maxPreemptions }),
    ...(maxRuntimeMs === undefined ? {} : { maxRuntimeMs }),
    ...(backfill === true ? { backfill } : {}),
    ...(nomination === null ? {} : { nomination }),
  };
}

/** What of its live admission a gang is to leave. */
function leavingFacts(job: Job): Pick<DocumentedFacts, "evicted" | "shrinksTo" | "moves"> {
  const keeps = shrinksTo(job);
  return {
    ...(isEvicted(job) ? { evicted: true as const } : {}),
    ...(keeps === null ? {} : { shrinksTo: keeps }),
    ...(isMoving(job) ? { moves: true as const } : {}),
  };
}

/** A restart as a whole needs the tokens of all members, so a gang that gave some back does not grow into one. */
export function growsNoMore(job: Pick<Job, "admissions">): boolean {
  const live = liveAdmission(job);
  return live?.partial === "RESTART" && live.returned !== undefined;
}

/** The facts for which the planner leaves a gang alone, or does not let it grow. */
function heldFacts(job: Job): Pick<DocumentedFacts, "suspended" | "setAside" | "growsNoMore"> {
  const { setAside } = job.status;
  const grown = growsNoMore(job) ? { growsNoMore: true as const } : {};
  if (setAside === undefined) return { suspended: isSuspended(job), ...grown };
  // A planner of the version before does not know `setAside`, and must not admit the job either.
  return { suspended: isSuspended(job) || liveAdmission(job) === null, setAside: setAside.message, ...grown };
}

function recordFacts(job: Job) {
  const { uid, namespace, name, project, spec, status, createTimeMs } = job;
  const ends = job.cancel !== null || job.deleteTimeMs !== null;
  return {
    uid,
    namespace,
    name,
    project,
    queue: spec.runPolicy.schedulingPolicy.queue,
    priority: spec.priority,
    createTimeMs,
    waits: status.phase === "WAITING" && !ends,
    ends,
    admissions: job.admissions.filter((admission) => !isHistory(admission)).map(plannedFrom),
    ...documentedFacts(job),
    ...(job.traceParent === undefined ? {} : { traceParent: job.traceParent }),
  };
}

function plannedFrom(admission: Admission): PlannedFrom {
  const { number, admitTimeMs, cluster, state, members, flavors, flavorLabels, tokensReleasedMs, goneMs } = admission;
  const { returned, repair } = admission;
  const planned = { number, admitTimeMs, cluster, state, members, flavors, flavorLabels, tokensReleasedMs, goneMs };
  return {
    ...planned,
    ...(returned === undefined ? {} : { returned }),
    ...(repair === undefined ? {} : { repair }),
  };
}
