import type { JsonObject } from "../../runtime/json.ts";

/** How far a task has come, in Flyte's words. UNDEFINED: not known in this round. Failures and SUCCESS and ABORTED end an attempt. */
export const TASK_PHASES = [
  "UNDEFINED",
  "NOT_READY",
  "WAITING_FOR_RESOURCES",
  "WAITING_FOR_CACHE",
  "QUEUED",
  "INITIALIZING",
  "RUNNING",
  "SUCCESS",
  "RETRYABLE_FAILURE",
  "PERMANENT_FAILURE",
  "ABORTED",
] as const;
export type TaskPhase = (typeof TASK_PHASES)[number];

/** Where something of a job can be read. */
export type LogLink = { readonly name: string; readonly uri: string };

export const CACHE_STATUSES = ["DISABLED", "MISS", "HIT", "POPULATED"] as const;
/** Whether a result came from an earlier job. */
export type CacheStatus = (typeof CACHE_STATUSES)[number];

/** Something outside that a job has started. */
export type ExternalResource = {
  readonly externalId: string;
  /** Stays the same through retries, although the id may change. */
  readonly index: number;
  readonly retryAttempt: number;
  /** Null: it has none. */
  readonly phase: TaskPhase | null;
  readonly cacheStatus: CacheStatus | null;
  readonly logs: readonly LogLink[];
};

/** One more thing that was the case on the way. */
export type ReasonInfo = { readonly reason: string; readonly occurredAtMs: number | null };

/** Of so many pods a job tells each by itself; one of ten thousand pods is read by its labels. */
export const PODS_TOLD_MAX = 100;

/** What a kind tells of its job beside the phase. */
export type TaskInfo = {
  readonly logs: readonly LogLink[];
  readonly externalResources: readonly ExternalResource[];
  /** When it came to be so; reported when the record was made. */
  readonly occurredAtMs: number | null;
  readonly reportedAtMs: number | null;
  readonly additionalReasons: readonly ReasonInfo[];
  /** Whatever else the kind shows. */
  readonly customInfo: JsonObject | null;
};

/** The last news of a job from its kind: phase and version name it, and the same ones are no news. */
export type RecordedInfo = TaskInfo & {
  readonly phase: TaskPhase;
  readonly version: number;
  readonly reason: string;
};

/** What a kind keeps for its next round; `version` says in which form. */
export type PluginState = { readonly version: number; readonly value: JsonObject | null };

/** The next call that a kind's plugin is due; `done`: none. */
export type PluginStage = "handle" | "abort" | "finalize" | "done";

/**
 * Where the plugin of a job without pods stands with one attempt of one admission. Of a job with pods it is there only where its kind has failed,
 * and counts how often.
 *
 *   handle ──▶ finalize ──▶ done             the plugin has said the end
 *     │           ▲   └───▶ handle           of an attempt that is followed by another, without its state
 *     └──▶ abort ─┘                          cancelled, suspended, out of time, given up, or a failure that wants clean-up
 */
export type PluginRecord = {
  readonly admission: number;
  /** Counts on over admissions, as attempts of pods do. */
  readonly attempt: number;
  readonly stage: PluginStage;
  readonly state: PluginState;
  /** The present stage's call that failed so often in a row. */
  readonly failedCalls: number;
  /** How the last of them failed; absent where none has. */
  readonly lastFailure?: string;
  /** The next call is not made before. */
  readonly notBeforeMs: number;
};
