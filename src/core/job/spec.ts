import type { JsonObject } from "../../runtime/json.ts";

/** Which failed pods of a replica type are started again (Kubeflow common API). ExitCode: 1–127 permanent, 128 and above retryable. */
export type RestartPolicy = "Always" | "OnFailure" | "Never" | "ExitCode";

/** Which pods are deleted once the job has ended; Running means Running or Pending (Kubeflow common API). */
export type CleanPodPolicy = "All" | "Running" | "None";

/** What a failed pod restarts: itself, or every pod of its gang. REPLICA is Kubeflow's way, GANG the default of a plain Job. */
export type RestartScope = "REPLICA" | "GANG";

export type ReplicaSpec = {
  /** How many pods of this type; 0 is none. */
  readonly replicas: number;
  readonly restartPolicy: RestartPolicy;
  /** A Kubernetes PodTemplateSpec as JSON: `metadata` and `spec`. */
  readonly template: JsonObject;
  /** What attempts of an interruptible job run once nobody is to interrupt them any more; absent: the same. */
  readonly uninterruptedTemplate?: JsonObject;
};

export type SchedulingPolicy = {
  /** How many pods of the gang must be admitted together; 1 to the number of all replicas. */
  readonly minAvailable: number;
  readonly queue: string;
  /** What the gang's PodGroup asks for, as quantities, instead of the sum of its first members; absent: that sum. */
  readonly minResources?: Readonly<Record<string, string>>;
  /** The priority class of the gang's PodGroup; absent: none. */
  readonly priorityClass?: string;
  /** Undo an admission that has fewer than `minAvailable` members running for so long; 0: never. */
  readonly scheduleTimeoutSeconds: number;
};

export type RunPolicy = {
  readonly cleanPodPolicy: CleanPodPolicy;
  /** Forget the job so long after it ended; null: never. */
  readonly ttlSecondsAfterFinished: number | null;
  /** Fail the job so long after its start; null: never. */
  readonly activeDeadlineSeconds: number | null;
  /** The job fails at this many counted failures, at the first for 0; null: unlimited. */
  readonly backoffLimit: number | null;
  /** The job fails once the system has failed it this often. */
  readonly systemBackoffLimit: number;
  /** After so many failures that the system caused, an interruptible job is not interruptible any more; absent: 1. */
  readonly interruptibleFailureThreshold?: number;
  readonly restartScope: RestartScope;
  /** The job is not admitted, or not any longer, while this is set; absent in records that are older than the field: false. */
  readonly suspend?: boolean;
  /** Its pods may be taken away for others, and run where the platform says that such pods run; absent: no. */
  readonly interruptible?: boolean;
  /** A job of the namespace with this key and the same payload that has succeeded answers for this one; absent: it runs by itself. */
  readonly cacheKey?: string;
  readonly schedulingPolicy: SchedulingPolicy;
};

/** Where a gang may run; empty lists and maps ask for nothing. */
export type Placement = {
  /** Names of clusters; empty: any. */
  readonly clusters: readonly string[];
  /** Labels that the cluster must carry. */
  readonly clusterSelector: Readonly<Record<string, string>>;
  /** Flavors by their short or full name (`h100`, `gpu/h100`); empty: any. */
  readonly gpuModels: readonly string[];
};

/** A job's spec after defaulting. Once the job is durable only priority, numbers of replicas and `suspend` change, see `changeJob`. */
export type JobSpec = {
  readonly kind: string;
  /** By replica type as its kind spells it: Master, Worker, Chief, PS, … */
  readonly replicaSpecs: Readonly<Record<string, ReplicaSpec>>;
  readonly runPolicy: RunPolicy;
  /** What only this kind has: `nprocPerNode`, … */
  readonly kindSpec: JsonObject;
  /** What commands and arguments name as `{{ .Inputs.NAME }}`; absent: nothing. */
  readonly inputs?: JsonObject;
  /** Orders a queue, higher first. */
  readonly priority: number;
  readonly placement: Placement;
};

/** How many pods the job has in full. */
export function totalReplicas(spec: JobSpec): number {
  return Object.values(spec.replicaSpecs).reduce((sum, replica) => sum + replica.replicas, 0);
}

/** A replica spec as it is kept and told where templates would only be in the way: its template is empty. */
export function bareReplica({ uninterruptedTemplate: _left, ...spec }: ReplicaSpec): ReplicaSpec {
  return { ...spec, template: {} };
}
