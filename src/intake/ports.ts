import type { Job } from "../core/job/job.ts";
import type { SentJob } from "../core/job/sent.ts";
import type { PodConfig } from "../core/pods/pod-config.ts";
import type { JobEvent } from "../core/reconcile/decision.ts";
import type { Clock } from "../runtime/clock.ts";

/** What validation and defaulting need to know of a namespace and its queues. */
export type IntakeFacts = {
  /** Null if there is no such namespace; `open`: it would be made on first use. */
  readonly namespace: { readonly project: string; readonly defaultQueue: string } | null | "open";
  /** True if a queue of that name exists. */
  readonly queueExists: (queue: string) => Promise<boolean>;
};

/** A job ready to be made durable. `job.version` is 1 and its status WAITING with Created True. */
export type NewJob = {
  readonly job: Job;
  readonly sent: SentJob;
  /** Empty: none. */
  readonly requestId: string;
  /** Answer as it would, and leave everything as it was. Absent: false. */
  readonly dryRun?: boolean;
};

export type CreateOutcome =
  | { readonly kind: "created" | "replayed" | "unchanged"; readonly job: Job }
  /** The name is taken by another spec, or the request id was used with another payload; `sent` is what was sent then. */
  | { readonly kind: "nameTaken" | "requestIdReused"; readonly sent: SentJob }
  /** The request id made a job that has been deleted since. */
  | { readonly kind: "madeAndDeleted"; readonly uid: string }
  /** A job of that name is being deleted. */
  | { readonly kind: "beingDeleted" };

export type CreatedJob = { readonly kind: "created"; readonly job: Job };

export type CancelOutcome =
  | { readonly kind: "cancelled" | "deleting" | "already"; readonly job: Job }
  | { readonly kind: "notFound" }
  /** It ended before: cancelling would change nothing of how. */
  | { readonly kind: "terminal"; readonly job: Job };

export type IntakeStore = {
  readonly facts: (namespace: string) => Promise<IntakeFacts>;
  /** What an earlier call with this request id has made; null if there was none. */
  readonly earlierRequest: (request: {
    readonly namespace: string;
    readonly requestId: string;
    readonly sent: SentJob;
  }) => Promise<CreateOutcome | null>;
  /** One transaction: namespace on first use where that is allowed, request id, job and its first event. Exactly once. */
  readonly createJob: (job: NewJob) => Promise<CreateOutcome>;
  /**
   * Many at once, in one transaction: those whose name and request id are free are created. Null for one that something stands in the way of
   * or that is a dry run: nothing was done for it.
   */
  readonly createJobs: (jobs: readonly NewJob[]) => Promise<readonly (CreatedJob | null)[]>;
  /**
   * One transaction over the job's row: writes the job and the event that `decide` answers with, or nothing where it decides otherwise, and
   * passes that on. `decide` may be asked more than once.
   */
  readonly changeJob: <Other extends { readonly kind: string }>(
    which: { namespace: string; name: string },
    decide: (job: Job) => { readonly kind: "changed"; readonly job: Job; readonly event: JobEvent } | Other,
    nowMs: number,
  ) => Promise<
    { readonly kind: "changed"; readonly job: Job; readonly event: JobEvent } | Other | { readonly kind: "notFound" }
  >;
  readonly requestCancel: (
    which: { namespace: string; name: string },
    reason: string,
    nowMs: number,
  ) => Promise<CancelOutcome>;
  readonly requestDelete: (which: { namespace: string; name: string }, nowMs: number) => Promise<CancelOutcome>;
};

export type IntakePorts = {
  readonly clock: Clock;
  readonly store: IntakeStore;
  /** What the platform gives to pods at that moment; absent: nothing. */
  readonly podConfig?: () => PodConfig;
  /** Random bytes for uids and generated names. */
  readonly randomBytes: (count: number) => Uint8Array;
  /** The trace context that a new job is joined to; absent without tracing. */
  readonly traceParent?: () => string | undefined;
  readonly wakePlanner: () => void;
  readonly wakeJob: (jobUid: string) => void;
};
