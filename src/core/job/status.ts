import type { PluginRecord, RecordedInfo, TaskPhase } from "./task-info.ts";

/** Where a job is on its way; the last three are terminal. */
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

/** Kubeflow's condition types, then those that Kueue's users expect. */
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
  | "PodsReady";

export type Condition = {
  readonly type: ConditionType;
  readonly status: "True" | "False";
  /** CamelCase, e.g. `PyTorchJobRunning`. */
  readonly reason: string;
  readonly message: string;
  readonly lastUpdateMs: number;
  readonly lastTransitionMs: number;
};

export type ReplicaStatus = { readonly active: number; readonly succeeded: number; readonly failed: number };

/** Whose fault a failure is; each has a budget of its own. */
export type FailureKind = "USER" | "SYSTEM";

export type Failure = {
  /** CamelCase, e.g. `ExitCode`, `OOMKilled`, `DeadlineExceeded`, `BackoffLimitExceeded`. */
  readonly code: string;
  readonly kind: FailureKind;
  readonly message: string;
  readonly container: string | null;
  readonly exitCode: number | null;
};

/** One replica's place in a gang, `Worker/0`. */
export type ReplicaKey = `${string}/${number}`;

export type Attempts = {
  /** Failures counted against `backoffLimit`. */
  readonly user: number;
  /** Failures that the system caused. */
  readonly system: number;
  /** The attempt that the record names for each replica that was started again; absent: 1. */
  readonly byReplica: Readonly<Record<string, number>>;
  /** When a replica that failed may be created again, by replica; absent: at once. */
  readonly notBeforeMs: Readonly<Record<string, number>>;
  /** High-water mark of container restarts counted so far, by pod uid; only of pods that still matter. */
  readonly restartsSeen: Readonly<Record<string, number>>;
};

/** How far an admission has come: `live` runs or starts; `ended` follows a terminal status; `undone` goes back to waiting. */
export type AdmissionState = "live" | "ended" | "undone";

/** One boarding of a gang. Numbered 1, 2, … within its job. */
export type Admission = {
  readonly number: number;
  /** Empty for a job without pods, which is in no cluster. */
  readonly cluster: string;
  readonly admitTimeMs: number;
  /** How many replicas of each type belong to it: the first ones by index. */
  readonly members: Readonly<Record<string, number>>;
  /** The flavor that each extended resource was admitted under: `nvidia.com/gpu` → `gpu/h100`; empty for a gang that asks for none. */
  readonly flavors: Readonly<Record<string, string>>;
  /** Node labels that the flavors demand: pods get them as required node affinity. */
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly state: AdmissionState;
  /** When its tokens were released; null while it holds them. */
  readonly tokensReleasedMs: number | null;
  /** When an observer last saw nothing of it left in its cluster; null while something is or may be there. */
  readonly goneMs: number | null;
  /**
   * Live: since when fewer than `minAvailable` members run or ended well, or fewer than all that have not failed for good if these are less;
   * null while enough do. Starts at the admission. No longer live:
   * until when its pods were asked for, as far as is known; a create whose answer was lost may come a while after.
   */
  readonly belowMinSinceMs: number | null;
};

/** Why a job waits, as far as it is stored; its position is computed when read. */
export type Waiting = {
  /** CamelCase: `QueueQuota`, `ClusterCapacity`, `Backoff`, `Draining`, … */
  readonly reason: string;
  readonly message: string;
  readonly sinceMs: number;
};

/** After an undone admission: when the gang may be admitted again, and which cluster comes last. */
export type AdmissionBackoff = { readonly undone: number; readonly notBeforeMs: number; readonly lastCluster: string };

/** How the first pods of an admission are, by replica: who is not named has not started yet, or not again. */
export type PodPhases = {
  readonly admission: number;
  readonly phases: Readonly<Record<ReplicaKey, TaskPhase>>;
};

export type JobStatus = {
  readonly phase: JobPhase;
  readonly conditions: readonly Condition[];
  readonly replicaStatuses: Readonly<Record<string, ReplicaStatus>>;
  readonly startTimeMs: number | null;
  readonly completionTimeMs: number | null;
  readonly waiting: Waiting | null;
  readonly failure: Failure | null;
  readonly attempts: Attempts;
  readonly backoff: AdmissionBackoff | null;
  /** How the pods of an admission were when they were last seen; absent before that. */
  readonly pods?: PodPhases;
  /** When the number of replicas was last changed; absent: never. Until a while later, pods of the old number may still be made. */
  readonly resizedMs?: number;
  /** What the job's kind has told of it last; absent: nothing. */
  readonly info?: RecordedInfo;
  /**
   * Whether another job's result answers for this one, and whose (`namespace/name`): `waiting` for one on its way, `miss` where there was none.
   * Absent before that was looked for, and where it is not asked for.
   */
  readonly cache?: { readonly state: "waiting" | "miss" | "hit"; readonly by: string };
  /** Where the plugin of the job's kind stands; absent before it was first called. */
  readonly plugin?: PluginRecord;
};

export const TERMINAL_PHASES: readonly JobPhase[] = ["SUCCEEDED", "FAILED", "CANCELLED"];

/** True once a job has ended for good; its pods may still be cleaned up. */
export function isTerminal(status: JobStatus): boolean {
  return TERMINAL_PHASES.includes(status.phase);
}
