/** The functions that the services of the API need of the rest of the process. */

import type {
  AccessDeletion,
  AccessRefusal,
  NewBinding,
  NewBindingOutcome,
  NewRoleOutcome,
  RoleRecord,
} from "../core/access/binding.ts";
import type {
  BegunSession,
  FinishedLogin,
  OfferedLogins,
  ReturnedLogin,
  SessionTokens,
  StartedLogin,
} from "../core/access/console-session.ts";
import type { AccessCopy } from "../core/access/decide.ts";
import type { Identity } from "../core/access/identity.ts";
import type { MadeRobot, NewRobot, RobotPage, RobotPageRequest, RobotToken } from "../core/access/robot.ts";
import type { ChangeOutcome } from "../core/admin/change-outcome.ts";
import type {
  ClusterCheck,
  ClusterRecord,
  CredentialsRefusal,
  LossOutcome,
  SentCluster,
  SentCredentials,
  UidRefusal,
} from "../core/admin/cluster.ts";
import type { KeyRecord, RotationOutcome } from "../core/admin/credential-keys.ts";
import type { NamespaceChange, NamespaceOutcome, NamespaceRecord } from "../core/admin/namespace.ts";
import type { NodePage, NodeQuery } from "../core/admin/nodes/node-page.ts";
import type { GangsOfCluster, PlacedGang } from "../core/admin/placed-gangs.ts";
import type {
  PriorityClassChange,
  PriorityClassOutcome,
  PriorityClassRecord,
  PriorityClassSettings,
} from "../core/admin/priority-class.ts";
import type { QueueOutcome, QueueRecord, QueueSettings } from "../core/admin/queue.ts";
import type { QuotaGrant, QuotaGrantOutcome } from "../core/admin/quota-grant.ts";
import type { RuntimeChange, RuntimeOutcome, RuntimePage, RuntimeQuery } from "../core/admin/training-runtime.ts";
import type { LogFailure, LogRequest, LogTarget, OpenLog, PodForLog } from "../core/job/container-log.ts";
import type { EventPage, EventQuery } from "../core/job/event.ts";
import type { KeptLogs } from "../core/job/failure-logs/kept-logs.ts";
import type { Job } from "../core/job/job.ts";
import type { PlannedNodes } from "../core/job/placement/pod-places.ts";
import type { SilentClusters } from "../core/job/request/concerns.ts";
import type { CountQuery, JobCounts } from "../core/job/request/count.ts";
import type { WatchItem, WatchRequest } from "../core/job/request/event-log.ts";
import type { JobPage, JobQuery, ShownJob } from "../core/job/request/list.ts";
import type {
  BatchSubmitOutcome,
  EndOutcome,
  JobName,
  MadeJob,
  Submission,
  SubmitOutcome,
  UpdateOutcome,
} from "../core/job/request/requests.ts";
import type { FieldNote } from "../core/job/request/sent.ts";
import type { TenantRecord } from "../core/job/tenant-limits.ts";
import type { AskedChange } from "../core/kinds/change-job.ts";
import type { FindRuntime, RuntimeName, RuntimeSettings } from "../core/kinds/trainjob/training-runtime.ts";
import type { HashedAsk } from "../core/plan/model/ask.ts";
import type { Refusal } from "../core/plan/model/plan-types.ts";
import type { ForeseenSubmission, NeverRuns, Simulation } from "../core/plan/model/simulation.ts";
import type { PodView } from "../core/pods/read/pod-view.ts";

/** The tokens of robots. */
export type Robots = {
  readonly make: (
    robot: NewRobot & {
      readonly ttlMs: number;
      /** How many robots of the owner may have tokens that count. Null: any number. */
      readonly ownedMax: number | null;
    },
  ) => Promise<MadeRobot>;
  /** Null: there is no such robot. */
  readonly revoke: (name: string) => Promise<RobotToken | null>;
  /** Null: there is no such robot. */
  readonly get: (name: string) => Promise<RobotToken | null>;
  readonly list: (page: RobotPageRequest) => Promise<RobotPage | "badCursor">;
};

export type JobIntake = {
  readonly submit: (submission: ForeseenSubmission) => Promise<SubmitOutcome>;
  /** Submits many jobs, each independent of the others. Answers in the order of the submissions. */
  readonly submitAll: (submissions: readonly ForeseenSubmission[]) => Promise<readonly BatchSubmitOutcome[]>;
  /** Returns everything that is wrong with a job. Changes nothing. */
  readonly check: (submission: Pick<Submission, "job" | "queueAccess">) => Promise<readonly FieldNote[]>;
  /** Returns the job that a submission would create, or why it would be refused. Changes nothing. */
  readonly make: (submission: Submission) => Promise<MadeJob>;
  readonly change: (job: JobName, wanted: AskedChange) => Promise<UpdateOutcome>;
  readonly cancel: (job: JobName, reason: string) => Promise<EndOutcome>;
  readonly remove: (job: JobName) => Promise<EndOutcome>;
};

export type JobReads = {
  readonly getJob: (job: JobName | { readonly uid: string }) => Promise<ShownJob | null>;
  readonly listJobs: (query: JobQuery) => Promise<JobPage | "badCursor">;
  /** Counts the jobs that pass the filter in groups. */
  readonly countJobs: (query: CountQuery) => Promise<JobCounts>;
  /** The names of the queues below a queue. */
  readonly queuesBelow: (queue: string) => Promise<readonly string[]>;
  /** The uids of the jobs with pods on a node, as its cluster was last recorded. `cluster` empty: of any cluster. */
  readonly jobsOnNode: (of: { readonly node: string; readonly cluster: string }) => Promise<readonly string[]>;
  /** As they were known a second ago at most. */
  readonly silentClusters: () => Promise<SilentClusters>;
  readonly listEvents: (query: EventQuery) => Promise<EventPage | "notFound" | "badCursor">;
  /**
   * Why the planner last did not admit the job, and the time of the numbers. Null if the job does not wait, or if the
   * planner has not tried it yet.
   */
  readonly refusalOf: (
    jobUid: string,
    signal: AbortSignal,
  ) => Promise<{ readonly refusal: Refusal; readonly atMs: number } | null>;
  /** The planned nodes of the job's live admission, and its pods there. Null: none are planned. */
  readonly plannedNodes: (jobUid: string) => Promise<PlannedNodes | null>;
  /** What is kept of the last lines of containers that failed. Null: the job does not exist. */
  readonly failureLogs: (jobUid: string) => Promise<KeptLogs | null>;
};

/** Judges a job that was not submitted. Null: the caller left before its turn. */
export type SimulateJob = (job: Job, signal: AbortSignal) => Promise<Simulation | null>;

/**
 * Says why a job that is about to be submitted can never run. Null: it can, or that is not known in time. `mayUse`: the
 * queues that may be named. `mustKnow`: waits for the answer whatever it takes.
 */
export type ForeseeJob = (
  job: Job,
  asked: HashedAsk,
  of: {
    /** The name of the caller. Jobs alike of one caller get the same answer for a moment, unless it must know. */
    readonly caller: string;
    readonly mayUse: (queue: string) => boolean;
    readonly mustKnow: boolean;
    readonly signal: AbortSignal;
  },
) => Promise<NeverRuns | null>;

export type JobWatch = {
  /** Yields the items of one stream until `signal` is aborted, or until a `TOO_SLOW` item when its buffer is full. */
  readonly watch: (request: WatchRequest, signal: AbortSignal) => AsyncIterable<WatchItem>;
  /** True if a watch may start from this cursor. */
  readonly checkCursor: (cursor: string) => boolean;
};

/**
 * The outcome of a registration or an update. `check` is that of the new credentials. Omitted: none were sent.
 * `retired`: the simulated clusters that take no gangs since this registration.
 */
export type ClusterOutcome =
  | (ChangeOutcome<ClusterRecord> & { readonly check?: ClusterCheck; readonly retired?: readonly string[] })
  | CredentialsRefusal
  | UidRefusal;

/** Clusters that are registered while the service runs. */
export type ClusterAdmin = {
  readonly register: (cluster: SentCluster, credentials: SentCredentials) => Promise<ClusterOutcome>;
  /** Checks the cluster as `register` does, and registers nothing. */
  readonly tryOut: (cluster: SentCluster, credentials: SentCredentials) => Promise<ClusterCheck | CredentialsRefusal>;
  /** `version` 0 accepts any version; null credentials keep the stored ones. */
  readonly update: (
    cluster: SentCluster & { readonly version: number },
    credentials: SentCredentials | null,
  ) => Promise<ClusterOutcome>;
  readonly check: (name: string) => Promise<ClusterCheck | "notFound">;
  readonly remove: (name: string, forget: boolean) => Promise<ChangeOutcome<null>>;
  /** Why the server cannot use a cluster. Null: it can. Omitted: it is not known. */
  readonly problemOf?: (name: string) => string | null;
  /**
   * Which gangs with objects in a cluster are deleted once it is adopted. Null: it does not answer. Omitted: no cluster
   * is asked.
   */
  readonly gangsIfAdopted?: (name: string, signal: AbortSignal) => Promise<GangsOfCluster | null>;
  /** The keys that encrypt credentials, ordered by name. */
  readonly listKeys: () => Promise<readonly KeyRecord[]>;
  /** Encrypts all credentials again with the current key, which must be `to` unless that is empty. */
  readonly rotateKeys: (to: string, signal: AbortSignal) => Promise<RotationOutcome>;
};

export type Admin = {
  readonly createQueue: (queue: QueueSettings, actor: string) => Promise<QueueOutcome>;
  /** `version` 0 accepts any version. */
  readonly updateQueue: (queue: QueueSettings & Pick<QueueRecord, "version">, actor: string) => Promise<QueueOutcome>;
  /** A null reason ends the freeze. */
  readonly freezeQueue: (change: {
    readonly name: string;
    readonly reason: string | null;
    readonly actor: string;
  }) => Promise<ChangeOutcome<QueueRecord>>;
  readonly grantQuota: (grant: Omit<QuotaGrant, "atMs">) => Promise<QuotaGrantOutcome>;
  readonly revokeGrant: (of: {
    readonly queue: string;
    readonly flavor: string;
    readonly actor: string;
  }) => Promise<QuotaGrantOutcome>;
  /** Null: of all queues. */
  readonly listGrants: (queue: string | null) => Promise<readonly QuotaGrant[]>;
  readonly deleteQueue: (name: string, actor: string) => Promise<ChangeOutcome<QueueRecord>>;
  readonly getQueue: (name: string) => Promise<QueueRecord | null>;
  readonly listQueues: () => Promise<readonly QueueRecord[]>;
  readonly createNamespace: (change: NamespaceChange) => Promise<NamespaceOutcome>;
  /** `version` 0 accepts any version. */
  readonly updateNamespace: (change: NamespaceChange & Pick<NamespaceRecord, "version">) => Promise<NamespaceOutcome>;
  readonly deleteNamespace: (name: string) => Promise<ChangeOutcome<NamespaceRecord>>;
  readonly getNamespace: (name: string) => Promise<NamespaceRecord | null>;
  readonly listNamespaces: () => Promise<readonly NamespaceRecord[]>;
  /** Null: the namespace does not exist. */
  readonly setTenantLimits: (
    of: Pick<TenantRecord, "tenant" | "limits">,
    actor: string,
  ) => Promise<TenantRecord | null>;
  readonly listTenants: () => Promise<readonly TenantRecord[]>;
  readonly getCluster: (name: string) => Promise<ClusterRecord | null>;
  readonly listClusters: () => Promise<readonly ClusterRecord[]>;
  /** `notFound`: there is no cluster of the name that the query has. */
  readonly listNodes: (query: NodeQuery) => Promise<NodePage | "notFound" | "badCursor">;
  readonly setCordoned: (name: string, cordoned: boolean) => Promise<ChangeOutcome<ClusterRecord>>;
  /** Counts a cluster that does not answer as lost. */
  readonly declareLost: (name: string) => Promise<LossOutcome>;
  /** Lets what the restored records do not know in a cluster be deleted. */
  readonly adoptCluster: (name: string) => Promise<ChangeOutcome<ClusterRecord>>;
  /** The gangs with a live admission in a cluster, by name. */
  readonly placedGangs: (cluster: string) => Promise<readonly PlacedGang[]>;
};

/** Priority classes of jobs. Changes name the caller that makes them. */
export type PriorityClasses = {
  readonly create: (settings: PriorityClassSettings, actor: string) => Promise<PriorityClassOutcome>;
  readonly update: (change: PriorityClassChange, actor: string) => Promise<PriorityClassOutcome>;
  readonly remove: (name: string, actor: string) => Promise<ChangeOutcome<PriorityClassRecord>>;
  readonly get: (name: string) => Promise<PriorityClassRecord | null>;
  /** The highest value first. */
  readonly list: () => Promise<readonly PriorityClassRecord[]>;
};

/** Training runtimes of namespaces and of the installation. */
export type TrainingRuntimes = {
  /** `isTried`: answers as if it were done, and changes nothing. */
  readonly create: (settings: RuntimeSettings, of?: { readonly isTried?: boolean }) => Promise<RuntimeOutcome>;
  readonly update: (change: RuntimeChange, of?: { readonly isTried?: boolean }) => Promise<RuntimeOutcome>;
  readonly remove: (of: RuntimeName) => Promise<RuntimeOutcome>;
  /** An empty namespace names a runtime of the installation, shipped ones included. Null: there is none. */
  readonly find: FindRuntime;
  readonly list: (query: RuntimeQuery) => Promise<RuntimePage | "badCursor">;
};

/** The pods of jobs, as the clusters report them. */
export type JobPods = {
  /** Null: the cluster does not answer, or is not connected. */
  readonly ofJob: (
    of: { readonly cluster: string; readonly namespace: string; readonly jobUid: string },
    signal: AbortSignal,
  ) => Promise<readonly PodView[] | null>;
};

/** The logs of pods, read from the clusters. */
export type JobLogs = {
  /** `absent`: the cluster has no such pod, or the pod belongs to another admission. */
  readonly look: (
    target: LogTarget,
    signal: AbortSignal,
  ) => Promise<PodForLog | { readonly kind: "absent" } | LogFailure>;
  /** Opens a log. If the connection breaks later, reading the lines throws. */
  readonly open: (request: LogRequest, signal: AbortSignal) => Promise<OpenLog | LogFailure>;
};

/** What roles and bindings say, and when they have changed. */
export type Authorization = {
  readonly copy: () => AccessCopy;
  /** True if the copy may allow what was taken away. Nothing is changed by it then. */
  readonly isOutdated: () => boolean;
  readonly changed: (signal: AbortSignal) => Promise<void>;
  /** Called after calls that may have changed what the copy has. */
  readonly refresh: () => Promise<void>;
  /** Called for each call that is refused. */
  readonly onDenied: (refused: {
    readonly rpc: string;
    readonly subject: string;
    readonly method: string;
    /** The name of the thing that the call was about. */
    readonly resource: string;
    readonly permission: string;
    readonly scope: string;
    /** The name of a status of gRPC. */
    readonly outcome: string;
  }) => void;
};

/** Roles and bindings. */
export type AccessAdmin = {
  /** All of them, as they are now. */
  readonly read: () => Promise<AccessCopy>;
  readonly createRole: (
    role: Pick<RoleRecord, "name" | "permissions">,
    actor: Identity,
  ) => Promise<NewRoleOutcome | AccessRefusal>;
  /** Version 0: any version. */
  readonly deleteRole: (role: NamedVersion, actor: Identity) => Promise<AccessDeletion | AccessRefusal>;
  readonly createBinding: (binding: NewBinding, actor: Identity) => Promise<NewBindingOutcome | AccessRefusal>;
  readonly deleteBinding: (binding: NamedVersion, actor: Identity) => Promise<AccessDeletion | AccessRefusal>;
  /** Whether the caller could give away what the subject has already been given. Null: it could. */
  readonly beyondSubject: (subject: string, actor: Identity) => Promise<AccessRefusal | null>;
};

type NamedVersion = { readonly name: string; readonly version: number };

/** Logins of browsers. */
export type Logins = {
  readonly offered: () => OfferedLogins;
  /** Begins a session of a caller whose token was verified. `peer`: the other end of the call. */
  readonly begin: (caller: Identity, tokens: SessionTokens, peer: string) => Promise<BegunSession>;
  /**
   * Sends a person to the issuer. `target`: the path to which the browser goes once the person has logged in. `host`:
   * where the browser says that it is. Null: that does not matter.
   */
  readonly start: (target: string, host: string | null) => Promise<StartedLogin>;
  readonly finish: (back: ReturnedLogin) => Promise<FinishedLogin>;
  /** Ends the session of a secret, if there is one. */
  readonly end: (secret: string, why: string) => Promise<void>;
};
