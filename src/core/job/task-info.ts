import type { JsonObject } from "../../runtime/json.ts";

/**
 * The phase of a task, in Flyte's words. UNDEFINED: not known in this call. SUCCESS, failures and ABORTED end an
 * attempt.
 */
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

/** A link to a log. */
export type LogLink = { readonly name: string; readonly uri: string };

export const CACHE_STATUSES = ["DISABLED", "MISS", "HIT", "POPULATED"] as const;
/** Whether a result is that of an earlier job. */
export type CacheStatus = (typeof CACHE_STATUSES)[number];

/** A resource at a service that belongs to the job. */
export type ExternalResource = {
  readonly externalId: string;
  /** Stays the same across retries, although the id may change. */
  readonly index: number;
  readonly retryAttempt: number;
  /** Null: none. */
  readonly phase: TaskPhase | null;
  readonly cacheStatus: CacheStatus | null;
  readonly logs: readonly LogLink[];
};

/** A reason on the way to the present phase. */
export type ReasonInfo = { readonly reason: string; readonly occurredAtMs: number | null };

/** A job shows at most this many pods one by one. Find the others by their labels. */
export const PODS_TOLD_MAX = 100;

/** Details of a task beside its phase. */
export type TaskInfo = {
  readonly logs: readonly LogLink[];
  readonly externalResources: readonly ExternalResource[];
  /** `occurredAtMs`: when the phase began. `reportedAtMs`: when the info was recorded. Null: unknown. */
  readonly occurredAtMs: number | null;
  readonly reportedAtMs: number | null;
  readonly additionalReasons: readonly ReasonInfo[];
  /** Any other details that the kind shows. */
  readonly customInfo: JsonObject | null;
};

/** The last info of a job from its plugin. An info with the same phase and version is not recorded again. */
export type RecordedInfo = TaskInfo & {
  readonly phase: TaskPhase;
  readonly version: number;
  readonly reason: string;
};

/** The state that a plugin keeps between calls. `version` names its form. */
export type PluginState = { readonly version: number; readonly value: JsonObject | null };

/** The next call of a plugin. `done`: none. */
export type PluginStage = "handle" | "abort" | "finalize" | "done";

/**
 * The progress of a plugin with one attempt of one admission of a job without pods. A job with pods has this record
 * only if its kind threw an error: it then counts the failed calls.
 *
 *   handle ──▶ finalize ──▶ done: the plugin has reported the end
 *     │ ▲ └───▶ handle of the next attempt, without the state of this one
 *     └──▶ abort ─┘ cancelled, suspended, past the deadline, out of budget, or a failure with clean-up
 */
export type PluginRecord = {
  readonly admission: number;
  /** Continues across admissions, as the attempts of pods do. */
  readonly attempt: number;
  readonly stage: PluginStage;
  readonly state: PluginState;
  /** How often in a row the call of this stage has failed. */
  readonly failedCalls: number;
  /** The last failure. Omitted: none. */
  readonly lastFailure?: string;
  /** The earliest time of the next call. */
  readonly notBeforeMs: number;
};
