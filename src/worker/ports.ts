import type { Job } from "../core/job/job.ts";
import type { Plugin, ResourceManager, SecretManager } from "../core/kinds/plugin.ts";
import type { ClaimAction } from "../core/reconcile/claim.ts";
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
  /**
   * `reason` as Kubernetes says it: `AlreadyExists`, `Forbidden`, `Invalid`, `TooManyRequests`, `Conflict`, …; or `Unreachable`.
   * `retryAfterMs`: how long the server asks to be left alone, if it does.
   */
  | {
      readonly kind: "failed";
      readonly reason: string;
      readonly message: string;
      readonly retryAfterMs?: number | null;
    };

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
  /** Jobs that may have the result that a job asks for, or make it. */
  readonly findAlike: (job: Job) => Promise<readonly Job[]>;
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

/** What is asked about a job. */
export type JobPlace = {
  readonly uid: string;
  /** Clusters that its admissions name. */
  readonly clusters: readonly string[];
  /** Names of its pods: whatever holds one is seen too, without a job's uid where it is a stranger's. Absent: not looked for. */
  readonly names?: { readonly namespace: string; readonly pods: readonly string[] };
};

export type WorkerClusters = {
  /** Null until the reflectors of every cluster that the job's admissions name have completed a list. */
  readonly observe: (job: JobPlace) => Observed | null;
  /** The same, asked of the clusters themselves and not of what was heard of them; null where one does not answer. */
  readonly look: (job: JobPlace, signal: AbortSignal) => Promise<Observed | null>;
  readonly act: (action: Action, signal: AbortSignal) => Promise<ActOutcome>;
  /** Fails as Kubernetes says it: `NotFound` or `Invalid` where the object is gone or another of its name is there. */
  readonly claim: (action: ClaimAction, signal: AbortSignal) => Promise<ActOutcome>;
  /** Asks the cluster itself whether an anchor is there and stays; false also where it does not answer. */
  readonly anchorLives: (
    of: Pick<ClaimAction, "cluster" | "namespace" | "anchor">,
    signal: AbortSignal,
  ) => Promise<boolean>;
  /** Uids of all jobs of this installation of which anything is seen in any cluster. */
  readonly seenJobs: () => readonly string[];
  /** The namespace in which something of a job is seen; null where nothing is. */
  readonly namespaceOf: (jobUid: string) => string | null;
};

/** Events about an admission, by its anchor. */
export type ToldEvents = {
  readonly cluster: string;
  readonly namespace: string;
  readonly anchor: string;
  readonly jobUid: string;
  readonly events: readonly JobEvent[];
};

/** Who holds the tokens that a plugin asks for, and whose they are counted as. */
export type TaskHolder = {
  /** Tokens come and go only as long as this worker may record for the job. */
  readonly lease: BucketLease;
  readonly jobUid: string;
  readonly admission: number;
  readonly taskName: string;
  readonly project: string;
  readonly namespace: string;
  readonly priority: number;
};

/** What jobs without pods are run by. */
export type PluginHost = {
  /**
   * The plugin that runs jobs of that kind, loaded at the first call. Fails where it cannot be loaded; the next call tries again, also after one
   * that was aborted while it still waited.
   */
  readonly pluginOf: (kind: string, signal: AbortSignal) => Promise<Plugin>;
  readonly resources: (holder: TaskHolder) => ResourceManager;
  readonly secrets: SecretManager;
};

export type WorkerPorts = {
  readonly clock: Clock;
  readonly store: WorkerStore;
  readonly clusters: WorkerClusters;
  /** Runs what changes a job or its clusters, in a span that is joined to the job; absent: not traced. */
  readonly traceStep?: <T>(job: Job, run: () => Promise<T>) => Promise<T>;
  /** Tells of a job's events in the cluster of its last admission too. Nobody waits for it, and it may be lost; absent: not wanted. */
  readonly tellCluster?: (told: ToldEvents) => void;
  /** Told what a job's actions came to; absent: nobody asks. */
  readonly onActed?: (job: Job, acted: readonly { readonly action: Action; readonly outcome: ActOutcome }[]) => void;
  /** Absent: jobs without pods fail for want of their plugins. */
  readonly plugins?: PluginHost;
  readonly member: WorkerMember;
  /** Tells the planner that something may have become free. A hint. */
  readonly wakePlanner: () => void;
};
