import type { JobFilter } from "../core/job/filter.ts";
import type { Job } from "../core/job/job.ts";
import type { FieldNote, SentJob } from "../core/job/sent.ts";
import type { WantedChange } from "../core/kinds/change-job.ts";
import type { Refusal } from "../core/plan/plan-types.ts";
import type { ClusterCapacity, ClusterFlavor, FlavorQuota, QueueStrategy } from "../core/plan/snapshot.ts";
import type { GangScheduler } from "../core/pods/pod-group.ts";
import type { TreeProblem } from "../core/quota/check-tree.ts";
import type { JobEvent } from "../core/reconcile/decision.ts";

export type SubmitRequest = {
  readonly job: SentJob;
  readonly requestId: string;
  readonly validateOnly: boolean;
  /** Warnings become errors. */
  readonly strict: boolean;
  readonly createdBy: string;
};

export type SubmitOutcome =
  | {
      readonly kind: "created" | "replayed" | "unchanged" | "valid";
      readonly job: Job;
      readonly warnings: readonly FieldNote[];
    }
  | { readonly kind: "invalid"; readonly violations: readonly FieldNote[]; readonly warnings: readonly FieldNote[] }
  | { readonly kind: "unknownNamespace"; readonly namespace: string }
  | { readonly kind: "nameTaken" | "requestIdReused"; readonly difference: string }
  | { readonly kind: "madeAndDeleted"; readonly uid: string }
  | { readonly kind: "beingDeleted" };

export type JobIntake = {
  readonly submit: (request: SubmitRequest) => Promise<SubmitOutcome>;
  /** Many jobs, each on its own, in the order in which they are given; `failed`: what a single one would have thrown. */
  readonly submitAll: (
    requests: readonly SubmitRequest[],
  ) => Promise<readonly (SubmitOutcome | { readonly kind: "failed"; readonly error: unknown })[]>;
  /** Everything that is wrong with a job that breaks the proto's constraints already; nothing of it reaches the store. */
  readonly check: (sent: SentJob) => Promise<readonly FieldNote[]>;
  readonly change: (which: { namespace: string; name: string }, wanted: WantedChange) => Promise<UpdateOutcome>;
  readonly cancel: (which: { namespace: string; name: string }, reason: string) => Promise<EndOutcome>;
  readonly remove: (which: { namespace: string; name: string }) => Promise<EndOutcome>;
};

export type UpdateOutcome =
  | { readonly kind: "changed" | "unchanged" | "terminal" | "ending"; readonly job: Job }
  | { readonly kind: "notFound" | "stale" }
  | { readonly kind: "fixedSize"; readonly role: string }
  | { readonly kind: "invalid"; readonly violations: readonly FieldNote[] };

export type EndOutcome =
  | { readonly kind: "cancelled" | "deleting" | "already"; readonly job: Job }
  | { readonly kind: "notFound" }
  | { readonly kind: "terminal"; readonly job: Job };

/** A job as it is shown: its record with what is computed when read. */
export type ShownJob = {
  readonly job: Job;
  /** Place in its queue, 1 is next; null unless it waits. */
  readonly position: number | null;
  /** Tokens its current admission holds, by pool. */
  readonly tokens: readonly { readonly pool: string; readonly amount: number; readonly fence: bigint }[];
};

export type JobOrder = "create_time" | "create_time desc" | "name" | "priority desc";

export type JobReads = {
  readonly getJob: (which: { namespace: string; name: string } | { uid: string }) => Promise<ShownJob | null>;
  /** Keyset pages: `after` is the cursor that the previous page returned. */
  readonly listJobs: (query: {
    readonly filter: JobFilter;
    readonly order: JobOrder;
    readonly pageSize: number;
    readonly after: string | null;
  }) => Promise<
    { readonly jobs: readonly ShownJob[]; readonly next: string | null; readonly total: number } | "badCursor"
  >;
  readonly listEvents: (query: {
    readonly namespace: string;
    readonly name: string;
    readonly pageSize: number;
    readonly after: string | null;
  }) => Promise<{ readonly events: readonly ShownEvent[]; readonly next: string | null } | "notFound" | "badCursor">;
  /** What the planner last found in the way; null if the job does not wait or was not looked at yet. */
  readonly refusalOf: (jobUid: string) => Promise<{ readonly refusal: Refusal; readonly atMs: number } | null>;
};

export type ShownEvent = JobEvent & { readonly atMs: number; readonly version: number; readonly jobUid: string };

export type JobWatch = {
  /** Entries for one stream; ends when `signal` is aborted, ends with a `TOO_SLOW` entry where its bounded buffer overflows. */
  readonly watch: (
    request: { readonly filter: JobFilter; readonly cursor: string; readonly full: boolean },
    signal: AbortSignal,
  ) => AsyncIterable<
    | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly job: Job; readonly cursor: string }
    | { readonly type: "BOOKMARK" | "GAP" | "TOO_SLOW"; readonly cursor: string }
  >;
  readonly checkCursor: (cursor: string) => boolean;
};

export type QueueRecord = {
  readonly name: string;
  /** Null: it stands at the root of a tree. */
  readonly parent: string | null;
  readonly strategy: QueueStrategy;
  readonly quotas: readonly FlavorQuota[];
  readonly version: number;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
  /** Read only: what is used of each flavor, also by queues below beyond their guarantees, and how many jobs wait and are admitted. */
  readonly used: Readonly<Record<string, number>>;
  readonly waiting: number;
  readonly admitted: number;
};

export type NamespaceRecord = {
  readonly name: string;
  readonly project: string;
  readonly defaultQueue: string;
  readonly version: number;
  readonly createTimeMs: number;
};

export type ClusterRecord = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly flavors: readonly ClusterFlavor[];
  readonly cordoned: boolean;
  readonly simulated: boolean;
  readonly reachable: boolean;
  readonly observedMs: number | null;
  readonly version: number;
  readonly createTimeMs: number;
  readonly capacity: ClusterCapacity | null;
  readonly gangScheduler: GangScheduler | "none";
};

/** How a change of an administered record ended; `inUse` says by what. */
export type ChangeOutcome<T> =
  | { readonly kind: "done"; readonly record: T }
  | { readonly kind: "exists" | "notFound" | "stale" }
  | { readonly kind: "inUse"; readonly by: string }
  /** A flavor of a queue is a pool that is counted elsewhere. */
  | { readonly kind: "apart"; readonly pool: string; readonly domain: string; readonly durability: string };

/** How to reach a cluster, as a client said it: a kubeconfig's text, or a file of the server's. */
export type SentCredentials = {
  readonly kubeconfig:
    | { readonly kind: "text"; readonly text: string }
    | { readonly kind: "path"; readonly path: string };
  /** Empty: the kubeconfig's current one. */
  readonly context: string;
};

export type SentCluster = Pick<ClusterRecord, "name" | "labels" | "flavors"> & {
  /** Absent: none for a new cluster, as it is for one that is updated. */
  readonly gangScheduler?: ClusterRecord["gangScheduler"];
};

/** What a cluster says of itself; errors first. */
export type ClusterCheck = {
  readonly kubernetesVersion: string;
  readonly clockSkewMs: number | null;
  readonly findings: readonly {
    readonly severity: "ERROR" | "WARNING";
    readonly code: string;
    readonly message: string;
  }[];
};

export type CredentialsRefusal =
  /** What is wrong with the kubeconfig; never quotes a credential. */
  | { readonly kind: "refusedCredentials"; readonly problems: readonly string[] }
  /** Nothing to encrypt them with. */
  | { readonly kind: "noKey" };

/** Clusters that are registered while the service runs. */
export type ClusterAdmin = {
  readonly register: (
    cluster: SentCluster,
    credentials: SentCredentials,
  ) => Promise<(ChangeOutcome<ClusterRecord> & { readonly check?: ClusterCheck }) | CredentialsRefusal>;
  /** All that `register` would find, and nothing registered. */
  readonly tryOut: (cluster: SentCluster, credentials: SentCredentials) => Promise<ClusterCheck | CredentialsRefusal>;
  /** `version` 0: whatever it is now; null credentials: those it has. */
  readonly update: (
    cluster: SentCluster & { readonly version: number },
    credentials: SentCredentials | null,
  ) => Promise<ChangeOutcome<ClusterRecord> | CredentialsRefusal>;
  readonly check: (name: string) => Promise<ClusterCheck | "notFound">;
  readonly remove: (name: string, forget: boolean) => Promise<ChangeOutcome<null>>;
};

export type QueueSettings = Pick<QueueRecord, "name" | "parent" | "strategy" | "quotas">;

/** `misplaced`: it cannot stand below that parent. */
export type QueueOutcome = ChangeOutcome<QueueRecord> | { readonly kind: "misplaced"; readonly problem: TreeProblem };

export type Admin = {
  readonly createQueue: (queue: QueueSettings) => Promise<QueueOutcome>;
  /** `version` 0: whatever it is now. */
  readonly updateQueue: (queue: QueueSettings & Pick<QueueRecord, "version">) => Promise<QueueOutcome>;
  readonly deleteQueue: (name: string) => Promise<ChangeOutcome<QueueRecord>>;
  readonly getQueue: (name: string) => Promise<QueueRecord | null>;
  readonly listQueues: () => Promise<readonly QueueRecord[]>;
  readonly createNamespace: (
    namespace: Pick<NamespaceRecord, "name" | "project" | "defaultQueue">,
  ) => Promise<ChangeOutcome<NamespaceRecord>>;
  readonly updateNamespace: (
    namespace: Pick<NamespaceRecord, "name" | "project" | "defaultQueue" | "version">,
  ) => Promise<ChangeOutcome<NamespaceRecord>>;
  readonly deleteNamespace: (name: string) => Promise<ChangeOutcome<NamespaceRecord>>;
  readonly getNamespace: (name: string) => Promise<NamespaceRecord | null>;
  readonly listNamespaces: () => Promise<readonly NamespaceRecord[]>;
  readonly getCluster: (name: string) => Promise<ClusterRecord | null>;
  readonly listClusters: () => Promise<readonly ClusterRecord[]>;
  readonly setCordoned: (name: string, cordoned: boolean) => Promise<ChangeOutcome<ClusterRecord>>;
};

/** Whose log: a pod by its name, which counts only if it belongs to this admission of this job. */
export type LogTarget = {
  readonly cluster: string;
  readonly namespace: string;
  readonly pod: string;
  readonly jobUid: string;
  readonly admission: number;
};

export type ContainerForLog = {
  readonly name: string;
  /** Tells one run of the container from another. */
  readonly run: string;
  readonly state: "waiting" | "running" | "ended";
  /** Why it waits. */
  readonly reason: string;
};

/** What a cluster answered instead; `status` as in HTTP, 0 where no answer came. */
export type LogFailure = {
  readonly kind: "failed";
  readonly status: number;
  readonly reason: string;
  readonly message: string;
};

export type LogLine = {
  /** Null where the cluster does not say. */
  readonly timeNs: bigint | null;
  readonly text: string;
  /** The line goes on in the next one. */
  readonly partial: boolean;
};

export type OpenLog = { readonly kind: "open"; readonly lines: AsyncIterable<readonly LogLine[]> };

/** The logs of pods, from the clusters themselves. */
export type JobLogs = {
  readonly look: (
    target: LogTarget,
    signal: AbortSignal,
  ) => Promise<
    | { readonly kind: "found"; readonly containers: readonly ContainerForLog[] }
    | { readonly kind: "absent" }
    | LogFailure
  >;
  /** A connection that breaks throws while the lines are read. */
  readonly open: (
    request: LogTarget & {
      readonly container: string;
      readonly follow: boolean;
      readonly previous: boolean;
      readonly tailLines: number | null;
      /** RFC 3339; servers may begin up to a second earlier. */
      readonly sinceTime: string | null;
    },
    signal: AbortSignal,
  ) => Promise<OpenLog | LogFailure>;
};
