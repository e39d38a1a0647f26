import type { ClusterRecord } from "../core/admin/cluster.ts";
import type { NamespaceRecord, NamespaceRules } from "../core/admin/namespace.ts";
import type { JobEvent } from "../core/job/event.ts";
import type { Job } from "../core/job/job.ts";
import type { JobPriorityClass } from "../core/job/priority-class.ts";
import type { CreatedJob, CreateOutcome, EndOutcome, JobName, OutdatedCheck } from "../core/job/request/requests.ts";
import type { SentJob } from "../core/job/request/sent.ts";
import type { NoRoom } from "../core/job/tenant-limits.ts";
import type { Registry } from "../core/kinds/registry.ts";
import type { AskedJob } from "../core/plan/model/ask.ts";
import type { TopologyLevel } from "../core/plan/model/topology.ts";
import type { PodConfig } from "../core/pods/pod-config.ts";
import type { PolicyInForce } from "../core/pods/policy/pod-policy.ts";
import type { Clock } from "../runtime/clock.ts";

type KnownNamespace = Pick<NamespaceRecord, "project" | "defaultQueue"> & Partial<Pick<NamespaceRecord, "podPolicy">>;

/** Facts about a namespace and its queues that validation and defaulting need. */
export type IntakeFacts = {
  /** Null: the namespace does not exist. `open`: it does not exist, and the job may create it. */
  readonly namespace: KnownNamespace | null | "open";
  /** True if a queue of that name exists. */
  readonly queueExists: (queue: string) => Promise<boolean>;
  readonly priorityClasses: {
    /** The class of jobs that name neither a class nor a priority. Null: there is none. */
    readonly default: JobPriorityClass | null;
    /** Null: there is no class of that name. */
    readonly find: (name: string) => Promise<JobPriorityClass | null>;
    readonly names: () => Promise<readonly string[]>;
  };
  /** The resources that some node of some cluster has; all that are `wanted` and there. Null: that is not known. */
  readonly nodeResources: (wanted: readonly string[]) => Promise<ReadonlySet<string> | null>;
  /** The levels of nodes of each cluster. Empty: no cluster is registered. Omitted: that is not known. */
  readonly clusterLevels?: () => Promise<readonly ClusterLevels[]>;
  /** The clusters that take gangs. Empty if none of them is simulated. Omitted: the same. */
  readonly clusters?: readonly ClusterInUse[];
};

/** A cluster, and all levels that some of its nodes have. */
export type ClusterLevels = Pick<ClusterRecord, "name" | "labels"> & { readonly levels: readonly TopologyLevel[] };

type ClusterInUse = Pick<ClusterRecord, "name" | "labels" | "simulated">;

export type FactsWanted = { readonly namespace: string; readonly queue?: string };

export type IntakeStore = {
  /** `queue`: the one that the job is in, if its namespace has no default queue. Omitted: no queue is asked for. */
  readonly facts: (of: FactsWanted) => Promise<IntakeFacts>;
  /** Returns the outcome of an earlier call with this request id. Null: there was none. */
  readonly earlierRequest: (request: {
    readonly namespace: string;
    readonly requestId: string;
    readonly sent: SentJob;
  }) => Promise<CreateOutcome | null>;
  /**
   * Writes the request id, the job and its first event in one transaction, exactly once. Creates an open namespace.
   * The namespace and the queue exist until the job is written.
   */
  readonly createJob: (job: AskedJob) => Promise<CreateOutcome | OutdatedCheck>;
  /**
   * Creates, in one transaction, all jobs whose names and request ids are free, and whose namespaces and queues exist.
   * Null: nothing was written for this job, and `createJob` tells why.
   */
  readonly createJobs: (jobs: readonly AskedJob[]) => Promise<readonly (CreatedJob | null)[]>;
  /**
   * Locks the job's row and calls `decide` with the record and the job as it was sent. If it decides `changed`, writes
   * the job and the event; otherwise writes nothing. Returns the decision. May call `decide` more than once.
   */
  readonly changeJob: <Other extends { readonly kind: string }>(
    name: JobName,
    decide: (
      job: Job,
      sent: SentJob,
    ) => { readonly kind: "changed"; readonly job: Job; readonly event: JobEvent; readonly sent?: SentJob } | Other,
    nowMs: number,
  ) => Promise<
    | { readonly kind: "changed"; readonly job: Job; readonly event: JobEvent }
    | Other
    | { readonly kind: "notFound" }
    | NoRoom
  >;
  readonly requestCancel: (name: JobName, reason: string, nowMs: number) => Promise<EndOutcome>;
  readonly requestDelete: (name: JobName, nowMs: number) => Promise<EndOutcome>;
};

/** The rules that jobs are checked against and made by. */
export type IntakeRules = {
  readonly kinds: Registry;
  readonly podConfig: PodConfig;
  /** The pod policy that is in force in the job's namespace. */
  readonly podPolicy: PolicyInForce;
  /** True if the job may create its namespace, which does not exist yet. */
  readonly isNew: boolean;
  readonly isReserved: (namespace: string) => boolean;
};

export type IntakePorts = {
  readonly clock: Clock;
  readonly kinds: Registry;
  readonly store: IntakeStore;
  /** Returns the platform's current settings for pods. Omitted: there are none. */
  readonly podConfig?: () => PodConfig;
  /** Omitted: `NAMESPACE_RULES`. */
  readonly namespaceRules?: NamespaceRules;
  /** Returns random bytes for uids and generated names. */
  readonly randomBytes: (count: number) => Uint8Array;
  /** Returns the trace context of a new job. Omitted: without tracing. */
  readonly traceParent?: () => string | undefined;
  readonly wakePlanner: () => void;
  readonly wakeJob: (jobUid: string) => void;
};
