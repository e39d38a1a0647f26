/**
 * The status of a job: its phase, conditions, admissions and failures. Users read it in `gangway get`, and every
 * decision of the planner and the workers starts from it.
 */
import type { JsonObject } from "../../runtime/json.ts";
import type { FlavorLabels } from "./flavor-labels.ts";
import type { Nomination, PreemptionReason } from "./preemption.ts";
import type { PartialPolicy } from "./spec.ts";
import type { PluginRecord, RecordedInfo, TaskPhase } from "./task-info.ts";

/** The phase of a job. The last three are terminal. */
export type JobPhase =
  | "WAITING"
  | "ADMITTED"
  | "STARTING"
  | "RUNNING"
  | "RESTARTING"
  | "SUSPENDED"
  | "SUCCEEDED"
  | "FAILED"
  | "CANCELLED";

/** Kubeflow's condition types, then those of Kueue, then Gangway's own. */
export type ConditionType =
  | "Created"
  | "Running"
  | "Restarting"
  | "Suspended"
  | "Succeeded"
  | "Failed"
  | "Cancelled"
  | "QuotaReserved"
  | "Admitted"
  | "PodsReady"
  | "Preempted"
  | "SetAside";

export type Condition = {
  readonly type: ConditionType;
  readonly status: "True" | "False";
  /** CamelCase, such as `PyTorchJobRunning`. */
  readonly reason: string;
  readonly message: string;
  readonly lastUpdateMs: number;
  readonly lastTransitionMs: number;
};

export type ReplicaStatus = {
  readonly active: number;
  readonly succeeded: number;
  readonly failed: number;
  /** How many of the succeeded ones still ran when the job succeeded. Omitted: none. */
  readonly activeAtEnd?: number;
};

/** The cause of a failure: the user's program, or the system. Each kind has its own budget. */
export type FailureKind = "USER" | "SYSTEM";

/** Why a job failed. */
export type Failure = {
  /** CamelCase, such as `ExitCode`, `OOMKilled`, `DeadlineExceeded`, `BackoffLimitExceeded`. */
  readonly code: string;
  readonly kind: FailureKind;
  readonly message: string;
  readonly container: string | null;
  readonly exitCode: number | null;
  /** A limit of the run policy ended the job. Omitted: its pods did, or the record is of an older version. */
  readonly limit?: true;
};

/** Disruptions of pods of one admission that have one cause, such as a lost rack or a drained node. */
export type Incident = {
  readonly admission: number;
  /** When its first disruption was counted. */
  readonly sinceMs: number;
};

/** One replica's place in a gang, `Worker/0`. */
export type ReplicaKey = `${string}/${number}`;

/** A failure that was counted, and when. */
export type CountedFailure = Omit<Failure, "limit"> & { readonly atMs: number };

export type Attempts = {
  /** Failures counted against `backoffLimit`. */
  readonly user: number;
  /** Failures counted against `systemBackoffLimit`. The disruptions of one incident count once. */
  readonly system: number;
  /** The last incident that was counted. Omitted: no pod was disrupted yet. */
  readonly incident?: Incident;
  /** The last failure that was counted. Omitted: none was, or an older version has recorded it. */
  readonly last?: CountedFailure;
  /** How often an admission was undone for another gang. It counts against no limit. Omitted: never. */
  readonly preemptions?: number;
  /** The attempt of each replica that was restarted. Omitted: 1. */
  readonly byReplica: Readonly<Record<string, number>>;
  /** When a failed replica may be created again. Omitted: at once. */
  readonly notBeforeMs: Readonly<Record<string, number>>;
  /** Of kinds with rules: the part of the work that a member does. Omitted: the part of its index. */
  readonly parts?: Readonly<Record<ReplicaKey, number>>;
  /** Of kinds with rules: how often parts of the work have failed, of the failures that count. Omitted: never. */
  readonly failures?: Readonly<Record<ReplicaKey, number>>;
  /** Of kinds with rules: the failures since a part of the work has succeeded. Omitted: none. */
  readonly inRow?: number;
  /** Of kinds with rules: the restarts of the whole gang. Omitted: there was none. */
  readonly restarts?: GangRestarts;
  /** The container restarts counted so far, by pod uid. Only for pods that still count. */
  readonly restartsSeen: Readonly<Record<string, number>>;
};

/** How often a gang has restarted as a whole by the rules of its kind. */
export type GangRestarts = {
  readonly all: number;
  /** Those that count for the limit of the kind. */
  readonly counted: number;
  /** The attempt with which the last restart began. No pod starts before those of earlier attempts are gone. */
  readonly attempt: number;
};

/** How a member has ended. `FAILED`: for good; a failure that is retried is no end. */
export type MemberEnd = "SUCCEEDED" | "FAILED";

/** Members that gave their tokens back: indexes by replica type, the lowest first. */
export type ReturnedMembers = Readonly<Record<string, readonly number[]>>;

/**
 * The state of an admission. `live`: it starts or runs. `ended`: the job has ended. `undone`: the job waits again or is
 * suspended.
 */
export type AdmissionState = "live" | "ended" | "undone";

/** One admission of a gang. Numbered 1, 2, … within its job. */
export type Admission = {
  readonly number: number;
  /** Null for a job without pods, which runs in no cluster. */
  readonly cluster: string | null;
  /** The cluster is a simulated one: no program runs there. Omitted: it is not. */
  readonly simulated?: true;
  readonly admitTimeMs: number;
  /**
   * A whole number as text. It rises over all admissions of the installation, also after a restore from a dump: what a
   * later admission wrote is not overwritten by an earlier one. Omitted: an older version has admitted the gang.
   */
  readonly fence?: string;
  /** The number of members of each type: the first ones by index. */
  readonly members: Readonly<Record<string, number>>;
  /**
   * The rule of a gang that is not elastic and was admitted with fewer members than its job has. Removed once all have
   * run. Omitted: all were admitted, the kind is elastic, or an older version has admitted it.
   */
  readonly partial?: PartialPolicy;
  /** With RESTART: the members that the running programs were told. */
  readonly told?: Readonly<Record<string, number>>;
  /**
   * The flavor of each extended resource, `nvidia.com/gpu` → `gpu/h100`, or of each replica type's: a map as in
   * `flavor-labels`. Empty for a gang that requests none.
   */
  readonly flavors: Readonly<Record<string, string>>;
  /** The node labels of each of these flavors. Pods that request the resource require them. */
  readonly flavorLabels: FlavorLabels;
  readonly state: AdmissionState;
  /**
   * While live: how members have ended that are not started again under this admission. A new attempt of a member and a
   * scale-down remove its entry. Omitted: none has ended.
   */
  readonly ended?: Readonly<Record<ReplicaKey, MemberEnd>>;
  /** When members of each replica type could start, for kinds that start them in an order. Omitted: not recorded. */
  readonly begunMs?: Readonly<Record<string, number>>;
  /** When the last of these ends was recorded. Omitted: none was. */
  readonly lastEndMs?: number;
  /**
   * Members that have ended and gave their tokens back: indexes by replica type, the lowest first. They stay members.
   * Omitted: none.
   */
  readonly returned?: ReturnedMembers;
  /** The members that wait for other nodes. Omitted: none has waited since all pods were on nodes. */
  readonly repair?: RepairRequest;
  /** When it was stopped in a lost cluster in which none of its pods was seen running. Omitted: it was not. */
  readonly abandonedMs?: number;
  /** When its tokens were released. Null while it holds them. */
  readonly tokensReleasedMs: number | null;
  /** When its cluster was seen without any of its objects. Null while some exist or may exist. */
  readonly goneMs: number | null;
  /**
   * While live: since when fewer than `minAvailable` members run or have succeeded, or fewer than all that can still
   * run, if those are less. Null while enough do. Starts at the admission. Afterwards: the time until which pods may
   * have been created; a create whose answer was lost may take effect later.
   */
  readonly belowMinSinceMs: number | null;
};

/** Members of an admission that need other nodes: the scheduler did not take their pods on the planned ones. */
export type RepairRequest = {
  /** The version of the placement that they need another one for. A later version answers the request. */
  readonly version: number;
  /** How often the admission has asked, this time included. Forgotten once all its pods are on nodes. */
  readonly times: number;
  readonly members: readonly ReplicaKey[];
};

/** An admission of a job with pods: it is in a cluster. */
export type GangAdmission = Admission & { readonly cluster: string };

/** Why a job waits. Its position is computed when it is read. */
export type Waiting = {
  /** CamelCase: `QueueQuota`, `ClusterCapacity`, `Backoff`, `Draining`, … */
  readonly reason: string;
  readonly message: string;
  readonly sinceMs: number;
};

/** Why pods cannot start, however often it is tried. */
export type StartReason = "ImageNotFound" | "ImageAccessDenied" | "InvalidImageName" | "MissingKey";

/** Why pods of an admission cannot start. Counts only while that admission is live. */
export type StartProblem = {
  readonly admission: number;
  readonly reason: StartReason;
  /** The problem in the cluster's words, at most 500 characters. */
  readonly message: string;
};

/** After an undone admission: when the gang may be admitted again, and which cluster is tried last. */
export type AdmissionBackoff = {
  /** How many admissions in a row the start timeout has undone. */
  readonly undone: number;
  readonly notBeforeMs: number;
  /** Where its pods did not start. Omitted: no cluster is tried last. */
  readonly lastCluster?: string;
  /** Why its pods did not run, or that they were preempted. Omitted: not known. */
  readonly why?: string;
  /** True: a part of the gang waited in vain for the rest. Its next admission has all members. Omitted: false. */
  readonly whole?: true;
  /** How many starts in a row have failed for one permanent reason. Omitted: the last one did not. */
  readonly failedStarts?: { readonly reason: StartReason; readonly count: number };
};

/** A request of the planner to undo an admission. The job's worker carries it out. */
export type Eviction = {
  readonly admission: number;
  /** CamelCase: `QueueStopped`, `Preempted`. */
  readonly reason: string;
  readonly message: string;
  /** Why the gang is preempted. Omitted: it is not. */
  readonly preemption?: PreemptionReason;
};

/** A request of the planner that an elastic gang gives up members for another gang. It runs on with the others. */
export type Shrink = {
  readonly admission: number;
  /** All members that it keeps, by replica type. */
  readonly keeps: Readonly<Record<string, number>>;
};

/**
 * A request to the planner that a gang whose cluster is lost runs elsewhere. Its admission stays as it is until another
 * one is recorded.
 */
export type Move = {
  readonly admission: number;
  readonly sinceMs: number;
  /** Since when the cluster counts as lost: another loss of it is another request. */
  readonly lostMs: number;
};

/** More about a pod than its phase. Omitted members: an empty text, false, or 0. */
export type PodFacts = {
  readonly node?: string;
  readonly ready?: true;
  /** How often containers of this pod were restarted. */
  readonly restarts?: number;
  /** Why the pod failed or does not run, in CamelCase. */
  readonly reason?: string;
};

/** The phases of the first pods of an admission, by replica. Omitted replicas have not started. */
export type PodPhases = {
  readonly admission: number;
  readonly phases: Readonly<Record<ReplicaKey, TaskPhase>>;
  /** Facts about pods that have started or have a problem. Omitted: none, or recorded by an older version. */
  readonly facts?: Readonly<Record<ReplicaKey, PodFacts>>;
};

/** Why pods of one replica type do not run, as their cluster reports it. */
export type PodProblem = {
  readonly replicaType: string;
  /** How many pods of the type have this problem. */
  readonly pods: number;
  /** CamelCase: `Unschedulable`, `ImagePullBackOff`, `FailedCreatePod`, … */
  readonly reason: string;
  /** The cluster's words about the first of these pods. */
  readonly message: string;
  readonly sinceMs: number;
};

/** The problems of the pods of a live admission when they were recorded. */
export type PodProblems = { readonly atMs: number; readonly problems: readonly PodProblem[] };

/** Why no step reads the templates of a job: see `core/blame`. */
export type SetAside = {
  readonly sinceMs: number;
  /** CamelCase: `BlocksWorkers` or `FillsWorkers`. */
  readonly reason: string;
  readonly message: string;
};

export type JobStatus = {
  readonly phase: JobPhase;
  readonly conditions: readonly Condition[];
  readonly replicaStatuses: Readonly<Record<string, ReplicaStatus>>;
  readonly startTimeMs: number | null;
  readonly completionTimeMs: number | null;
  /**
   * When a worker last recorded a step of the job. No step is recorded for this time alone. Omitted: none was, or an
   * older version recorded it.
   */
  readonly lastReconcileMs?: number;
  readonly waiting: Waiting | null;
  readonly failure: Failure | null;
  readonly attempts: Attempts;
  readonly backoff: AdmissionBackoff | null;
  /** Counts only while that admission is live. Omitted: none was requested. */
  readonly eviction?: Eviction;
  /** Counts only while that admission is live. Omitted: no members are given up. */
  readonly shrink?: Shrink;
  /** Counts only while that admission is live. Omitted: the gang stays where it is. */
  readonly move?: Move;
  /** Counts only while the job waits: see `nominationOf`. Omitted: no gang is preempted for it. */
  readonly nomination?: Nomination;
  /**
   * The digest of its tree when it was preempted last, or when another gang took its place as a nominee. Omitted:
   * never, or before this was recorded.
   */
  readonly preemptedIn?: string;
  /** The phases of the pods when they were last seen. Omitted: not seen yet. */
  readonly pods?: PodPhases;
  /** Why pods of the live admission do not run. Omitted: no problem is known. */
  readonly podProblems?: PodProblems;
  /** Why the pods of the live admission cannot start. Omitted: they may, or have. */
  readonly startProblem?: StartProblem;
  /** Of kinds with rules: how parts of the work have ended for good, whatever the admission. Omitted: none has. */
  readonly ends?: Readonly<Record<ReplicaKey, MemberEnd>>;
  /**
   * When the number of replicas was last changed: pods of the old number may be created until shortly after. Omitted:
   * never.
   */
  readonly resizedMs?: number;
  /** The last info of the job's plugin. Omitted: none. */
  readonly info?: RecordedInfo;
  /** The outputs that the job's plugin has recorded, or those of the job whose result it reuses. Omitted: none. */
  readonly outputs?: JsonObject;
  /**
   * The state of the search for another job's result, and that job (`namespace/name`). `waiting`: that job has not
   * ended. `miss`: there is none. Omitted: not searched yet, or not requested.
   */
  readonly cache?: { readonly state: "waiting" | "miss" | "hit"; readonly by: string };
  /** The state of the job's plugin. Omitted: not called yet. */
  readonly plugin?: PluginRecord;
  /** Omitted: the job is not set aside. */
  readonly setAside?: SetAside;
  /** When the job was resumed after it had been set aside, oldest first, of about one day. Omitted: never. */
  readonly setAsideResumesMs?: readonly number[];
};

export const TERMINAL_PHASES: readonly JobPhase[] = ["SUCCEEDED", "FAILED", "CANCELLED"];

/** True once a job has ended. Its pods may still be cleaned up. */
export function isTerminal(status: Pick<JobStatus, "phase">): boolean {
  return TERMINAL_PHASES.includes(status.phase);
}
