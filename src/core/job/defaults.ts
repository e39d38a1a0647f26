import { QUEUE_LABEL } from "./labels.ts";
import type { SentReplicaSpec, SentRunPolicy, SentSpec } from "./sent.ts";
import type { JobSpec, ReplicaSpec, RestartPolicy, RestartScope, RunPolicy } from "./spec.ts";

/** What a kind gives to a job that does not say. */
export type KindDefaults = {
  readonly restartPolicy: RestartPolicy;
  readonly restartScope: RestartScope;
  /** Null: unlimited. */
  readonly backoffLimit: number | null;
};

/** What surrounds a spec when it is defaulted. */
export type DefaultsContext = {
  readonly kind: {
    readonly defaults: KindDefaults;
    /** A replica type as its kind spells it, from any case. */
    readonly roleName: (role: string) => string;
  };
  readonly labels: Readonly<Record<string, string>>;
  /** The namespace's own queue, if it has one. */
  readonly namespaceQueue: string | null;
  /** What the named priority class is worth, if the job names one. */
  readonly classPriority: number | null;
};

const QUEUE = "default";
const SCHEDULE_TIMEOUT_SECONDS = 600;
const SYSTEM_BACKOFF_LIMIT = 20;

/**
 * The whole spec of a job. Defaults: one replica, clean-pod policy None as Kubeflow's, a gang of all replicas, a start timeout of ten
 * minutes; the rest comes from the kind. Throws nothing; a spec that breaks a rule stays as wrong as it was sent.
 */
export function defaultSpec(sent: SentSpec, context: DefaultsContext): JobSpec {
  const { defaults, roleName } = context.kind;
  const replicaSpecs: Record<string, ReplicaSpec> = {};
  for (const [role, replica] of Object.entries(sent.replicaSpecs)) {
    replicaSpecs[roleName(role)] = defaultReplica(replica, defaults);
  }
  const total = Object.values(replicaSpecs).reduce((sum, replica) => sum + replica.replicas, 0);
  return {
    kind: sent.kind,
    replicaSpecs,
    runPolicy: defaultRunPolicy(sent.runPolicy ?? {}, total, context),
    kindSpec: sent.kindSpec ?? {},
    ...(sent.inputs === undefined ? {} : { inputs: sent.inputs }),
    priority: sent.priority ?? context.classPriority ?? 0,
    placement: { clusters: [], clusterSelector: {}, gpuModels: [], ...sent.placement },
  };
}

/** The queue of a job: its scheduling policy's, else its label's, else the namespace's, else `default`. */
export function queueOf(sent: SentSpec, context: Pick<DefaultsContext, "labels" | "namespaceQueue">): string {
  const named = sent.runPolicy?.schedulingPolicy?.queue || context.labels[QUEUE_LABEL] || context.namespaceQueue;
  return named || QUEUE;
}

function defaultReplica(replica: SentReplicaSpec, defaults: KindDefaults): ReplicaSpec {
  return {
    replicas: replica.replicas ?? 1,
    restartPolicy: replica.restartPolicy ?? defaults.restartPolicy,
    template: replica.template ?? {},
  };
}

/** Absent members stay absent, as in records that are older than them. */
function interruptions({ interruptible, interruptibleFailureThreshold }: SentRunPolicy) {
  return {
    ...(interruptible ? { interruptible } : {}),
    ...(interruptibleFailureThreshold === undefined ? {} : { interruptibleFailureThreshold }),
  };
}

function defaultRunPolicy(sent: SentRunPolicy, total: number, context: DefaultsContext): RunPolicy {
  const { defaults } = context.kind;
  const { minResources, priorityClass } = sent.schedulingPolicy ?? {};
  return {
    cleanPodPolicy: sent.cleanPodPolicy ?? "None",
    ttlSecondsAfterFinished: sent.ttlSecondsAfterFinished ?? null,
    activeDeadlineSeconds: sent.activeDeadlineSeconds ?? null,
    backoffLimit: sent.backoffLimit ?? defaults.backoffLimit,
    systemBackoffLimit: sent.systemBackoffLimit ?? SYSTEM_BACKOFF_LIMIT,
    restartScope: sent.restartScope ?? defaults.restartScope,
    suspend: sent.suspend ?? false,
    ...interruptions(sent),
    ...cacheKeyOf(sent),
    schedulingPolicy: {
      minAvailable: sent.schedulingPolicy?.minAvailable ?? total,
      queue: queueOf({ kind: "", replicaSpecs: {}, runPolicy: sent }, context),
      ...(minResources === undefined ? {} : { minResources }),
      ...(priorityClass ? { priorityClass } : {}),
      scheduleTimeoutSeconds: sent.schedulingPolicy?.scheduleTimeoutSeconds ?? SCHEDULE_TIMEOUT_SECONDS,
    },
  };
}

/** No key and an empty one are the same. */
function cacheKeyOf({ cacheKey }: SentRunPolicy): Pick<RunPolicy, "cacheKey"> {
  return cacheKey ? { cacheKey } : {};
}
