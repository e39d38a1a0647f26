import type { Job } from "../core/job/job.ts";
import type { Action, Decision, JobEvent, Observed } from "../core/reconcile/decision.ts";
import type { Clock } from "../runtime/clock.ts";

/** A bucket that this worker holds, and the epoch under which it may record. */
export type BucketLease = { readonly bucket: number; readonly epoch: number };

export type BucketView = {
  readonly workers: readonly string[];
  readonly mine: readonly BucketLease[];
  readonly free: readonly number[];
};

/** This worker among those that share the jobs. */
export type WorkerMember = {
  /** Its name for as long as it may be sure of what it holds, the same object all that time; null while it may not. */
  readonly term: () => { readonly name: string; readonly signal: AbortSignal } | null;
};

export type RecordOutcome = "recorded" | "stale" | "leaseLost";

/** How an action ended. Only `failed` wants a look again soon. */
export type ActOutcome =
  | { readonly kind: "done" }
  /** Already so: it exists and is ours, or it is gone. */
  | { readonly kind: "already" }
  /** `reason` as Kubernetes says it: `AlreadyExists`, `Forbidden`, `Invalid`, `TooManyRequests`, `Conflict`, …; or `Unreachable`. */
  | { readonly kind: "failed"; readonly reason: string; readonly message: string };

export type WorkerStore = {
  /** Every worker that lives, what this one holds, and what nobody who lives holds. */
  readonly bucketsOf: (worker: string) => Promise<BucketView>;
  /** Takes those of these buckets that nobody who lives holds: whoever held one cannot record any more. */
  readonly takeBuckets: (worker: string, buckets: readonly number[]) => Promise<readonly BucketLease[]>;
  /** Leaves buckets of this worker to others. */
  readonly giveBuckets: (worker: string, buckets: readonly number[]) => Promise<void>;
  /** Jobs of these buckets of which something may be in a cluster, by uid, after that one; null for the first page. */
  readonly openJobs: (
    buckets: readonly number[],
    page: { readonly after: string | null; readonly limit: number },
  ) => Promise<readonly string[]>;
  /** Jobs of these buckets whose time to look again has come, most overdue first. */
  readonly dueJobs: (buckets: readonly number[], nowMs: number, limit: number) => Promise<readonly string[]>;
  readonly loadJob: (jobUid: string) => Promise<{ readonly job: Job; readonly bucket: number } | null>;
  /**
   * One transaction guarded by the job's version and the bucket's epoch: status, admissions, released tokens (ledger rows and sums), events,
   * or the end of the record where the decision forgets it; and when to look again.
   */
  readonly record: (job: Job, decision: Decision, lease: BucketLease, nowMs: number) => Promise<RecordOutcome>;
  /** Moves only the time to look again, guarded by the bucket's epoch and the job's version: who changed the job has said when to look. */
  readonly recheckAt: (jobUid: string, atMs: number | null, lease: BucketLease, version: number) => Promise<void>;
  /** Appends events that change nothing of the job, such as SuccessfulCreatePod. */
  readonly note: (job: Job, events: readonly JobEvent[], nowMs: number) => Promise<void>;
};

export type WorkerClusters = {
  /** Null until the reflectors of every cluster that the job's admissions name have completed a list. */
  readonly observe: (job: { readonly uid: string; readonly clusters: readonly string[] }) => Observed | null;
  /** The same, asked of the clusters themselves and not of what was heard of them; null where one does not answer. */
  readonly look: (
    job: { readonly uid: string; readonly clusters: readonly string[] },
    signal: AbortSignal,
  ) => Promise<Observed | null>;
  readonly act: (action: Action, signal: AbortSignal) => Promise<ActOutcome>;
  /** Uids of all jobs of this installation of which anything is seen in any cluster. */
  readonly seenJobs: () => readonly string[];
  /** The namespace in which something of a job is seen; null where nothing is. */
  readonly namespaceOf: (jobUid: string) => string | null;
};

export type WorkerPorts = {
  readonly clock: Clock;
  readonly store: WorkerStore;
  readonly clusters: WorkerClusters;
  /** Runs what changes a job or its clusters, in a span that is joined to the job; absent: not traced. */
  readonly traceStep?: <T>(job: Job, run: () => Promise<T>) => Promise<T>;
  readonly member: WorkerMember;
  /** Tells the planner that something may have become free. A hint. */
  readonly wakePlanner: () => void;
};
