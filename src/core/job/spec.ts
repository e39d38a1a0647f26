import type { JsonObject } from "../../runtime/json.ts";
import type { TopologyWish } from "./placement/topology-wish.ts";

/**
 * Which failed pods of a replica type are retried (Kubeflow common API). ExitCode: 1–127 are permanent, 128 and above
 * are retried.
 */
export type RestartPolicy = "Always" | "OnFailure" | "Never" | "ExitCode";

/** Which pods are deleted after the job has ended. Running means Running or Pending (Kubeflow common API). */
export type CleanPodPolicy = (typeof CLEAN_POD_POLICIES)[number];
export const CLEAN_POD_POLICIES = ["All", "Running", "None"] as const;

/**
 * The pods that are restarted after a failure. REPLICA: the failed pod alone, as in Kubeflow. GANG: every pod of its
 * gang, which is the default of a plain Job.
 */
export type RestartScope = (typeof RESTART_SCOPES)[number];
export const RESTART_SCOPES = ["REPLICA", "GANG"] as const;

/**
 * The rule for a gang of a static kind while it has fewer members than its job has replicas. KEEP: its programs get the
 * number of all replicas, and wait for the others. RESTART: they get the number of members, and the gang restarts as a
 * whole once it has grown to all.
 */
export type PartialPolicy = (typeof PARTIAL_POLICIES)[number];
export const PARTIAL_POLICIES = ["KEEP", "RESTART"] as const;

export type ReplicaSpec = {
  /** The number of pods of this type. May be 0. */
  readonly replicas: number;
  readonly restartPolicy: RestartPolicy;
  /** A Kubernetes PodTemplateSpec as JSON: `metadata` and `spec`. */
  readonly template: JsonObject;
  /** The template for attempts of an interruptible job that is no longer interruptible. Omitted: the same template. */
  readonly uninterruptedTemplate?: JsonObject;
  /** How near each other the members of this type run. Omitted: no wish of its own. */
  readonly topology?: TopologyWish;
};

export type SchedulingPolicy = {
  /** How many pods of the gang must be admitted together, from 1 to all. */
  readonly minAvailable: number;
  readonly queue: string;
  /** The resources in the gang's PodGroup, as quantities. Omitted: the sum of its first members. */
  readonly minResources?: Readonly<Record<string, string>>;
  /** The priority class of the gang's PodGroup. Omitted: none. */
  readonly priorityClass?: string;
  /** Undo an admission that has run fewer than `minAvailable` members for this long. 0: never. */
  readonly scheduleTimeoutSeconds: number;
  /** True: nobody asked for that time; it is the default. Omitted: somebody did, or the record is older. */
  readonly isTimeoutDefault?: true;
  /** Omitted: KEEP. Jobs of an elastic kind have none. */
  readonly partial?: PartialPolicy;
  /** Protects the job after it has been preempted this many times. Omitted: as its queue says. */
  readonly maxPreemptions?: number;
};

export type RunPolicy = {
  readonly cleanPodPolicy: CleanPodPolicy;
  /** The policy if a limit of this run policy ends the job. Omitted, as in older records: `cleanPodPolicy`. */
  readonly cleanPodPolicyAtLimit?: CleanPodPolicy;
  /** Delete the job this long after it ended. Null: never. */
  readonly ttlSecondsAfterFinished: number | null;
  /** Fail the job this long after its start. Null: never. */
  readonly activeDeadlineSeconds: number | null;
  /** The job fails at this number of counted failures; 0 fails at the first. Null: no limit. */
  readonly backoffLimit: number | null;
  /** The job fails at this number of failures of the system. */
  readonly systemBackoffLimit: number;
  /** The job fails at this number of starts in a row for one permanent reason. Omitted, as in older records: never. */
  readonly startBackoffLimit?: number;
  /** An interruptible job stops being interruptible after this many failures of the system. Omitted: 1. */
  readonly interruptibleFailureThreshold?: number;
  readonly restartScope: RestartScope;
  /** True: the job is not admitted, and its admission is undone. Omitted in older records: false. */
  readonly suspend?: boolean;
  /** True: the pods run on interruptible nodes of the platform. Omitted: false. */
  readonly interruptible?: boolean;
  /** Ends the job this long after its admission, whatever its pods do. Omitted: never. */
  readonly maxRuntimeMs?: number;
  /**
   * The gang leaves a lost cluster that has not answered for this long, once it fits elsewhere. 0: never. Omitted: as
   * its queue or its namespace says.
   */
  readonly moveAfterMs?: number;
  /** True: a reservation may take the job's room back at once. Omitted: false. */
  readonly backfill?: boolean;
  /** The job reuses the result of a succeeded job of the namespace with the same key and payload. Omitted: it runs. */
  readonly cacheKey?: string;
  readonly schedulingPolicy: SchedulingPolicy;
};

/** What a queue or namespace says of its gangs whose cluster is lost. `WAIT`: they stay, however long it is lost. */
export const ON_CLUSTER_LOST = ["WAIT", "MOVE"] as const;
export type OnClusterLost = (typeof ON_CLUSTER_LOST)[number];

/** The clusters and flavors that a gang may use. Empty lists and maps have no effect. */
type Placement = {
  /** Names of clusters. Empty: any. */
  readonly clusters: readonly string[];
  /** Labels that the cluster must have. */
  readonly clusterSelector: Readonly<Record<string, string>>;
  /** Flavors by short or full name (`h100`, `gpu/h100`). Empty: any. */
  readonly gpuModels: readonly string[];
  /** How near each other all members run. Omitted: no wish. */
  readonly topology?: TopologyWish;
};

/** A job's spec with defaults. Only priority, its class, numbers of replicas and `suspend` change, see `changeJob`. */
export type JobSpec = {
  readonly kind: string;
  /** By replica type as its kind spells it: Master, Worker, Chief, PS, … */
  readonly replicaSpecs: Readonly<Record<string, ReplicaSpec>>;
  readonly runPolicy: RunPolicy;
  /** The members that only this kind has, such as `nprocPerNode`. */
  readonly kindSpec: JsonObject;
  /** Values for `{{ .Inputs.NAME }}` in commands and arguments. Omitted: none. */
  readonly inputs?: JsonObject;
  /** The position in the queue: higher first. */
  readonly priority: number;
  /** The priority class whose value and preemption policy the job has copied. Omitted: none. */
  readonly priorityClassName?: string;
  /** `NEVER`: the job preempts no other. Omitted: it may. */
  readonly preemptionPolicy?: "NEVER";
  readonly placement: Placement;
};

/** The number of all pods of the job. */
export function totalReplicas(spec: JobSpec): number {
  return Object.values(spec.replicaSpecs).reduce((sum, replica) => sum + replica.replicas, 0);
}

/** A spec without the templates of its pods (`{}`), for the event log, lists and streams. */
export function bareSpec(spec: JobSpec): JobSpec {
  const bare = Object.entries(spec.replicaSpecs).map(([role, { uninterruptedTemplate: _left, ...replica }]) => {
    return [role, { ...replica, template: {} }];
  });
  return { ...spec, replicaSpecs: Object.fromEntries(bare) };
}

/** A spec with the templates of `whole`, which is the spec of the same job: templates never change. */
export function withTemplates(spec: JobSpec, whole: JobSpec): JobSpec {
  const filled = Object.entries(spec.replicaSpecs).map(([role, replica]) => {
    return [role, { ...replica, template: whole.replicaSpecs[role]?.template ?? replica.template }];
  });
  return { ...spec, replicaSpecs: Object.fromEntries(filled) };
}
