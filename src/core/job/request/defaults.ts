import { QUEUE_LABEL } from "../labels.ts";
import { keptWish, type TopologyWish } from "../placement/topology-wish.ts";
import { copiedClass, type JobPriorityClass } from "../priority-class.ts";
import type { CleanPodPolicy, JobSpec, ReplicaSpec, RestartPolicy, RestartScope, RunPolicy } from "../spec.ts";
import type { SentReplicaSpec, SentRunPolicy, SentSpec } from "./sent.ts";

/** The defaults of a kind. */
export type KindDefaults = {
  readonly restartPolicy: RestartPolicy;
  readonly restartScope: RestartScope;
  /** Null: unlimited. */
  readonly backoffLimit: number | null;
  /** Omitted: None, as in Kubeflow. */
  readonly cleanPodPolicy?: CleanPodPolicy;
};

/** The facts that defaults depend on. */
type DefaultsContext = {
  readonly kind: {
    readonly defaults: KindDefaults;
    /** Spells a replica type as the kind does, from any case. */
    readonly roleName: (role: string) => string;
  };
  readonly labels: Readonly<Record<string, string>>;
  /** The default queue of the namespace. Null: none. */
  readonly namespaceQueue: string | null;
  /** The job's priority class. Null: unknown or none. */
  readonly priorityClass: JobPriorityClass | null;
};

const QUEUE = "default";
const SCHEDULE_TIMEOUT_SECONDS = 600;
const SYSTEM_BACKOFF_LIMIT = 20;
/** Enough for an image that is pushed while its job starts; each start may hold GPUs for the whole start timeout. */
const START_BACKOFF_LIMIT = 3;

/**
 * Completes the spec of a job. Defaults: one replica, clean-pod policy Running at a limit, a gang of all
 * replicas, a start timeout of ten minutes. The others come from the kind. Never throws: wrong values stay
 * unchanged.
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
    priority: sent.priority ?? context.priorityClass?.value ?? 0,
    ...copiedClass(context.priorityClass),
    placement: defaultPlacement(sent.placement),
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
    ...wished(replica.topology),
  };
}

function defaultPlacement({ topology, ...selection }: SentSpec["placement"] = {}): JobSpec["placement"] {
  return { clusters: [], clusterSelector: {}, gpuModels: [], ...selection, ...wished(topology) };
}

/** Keeps an omitted wish omitted, as in older records. */
function wished(wish: TopologyWish | undefined): { readonly topology?: TopologyWish } {
  const topology = keptWish(wish);
  return topology === undefined ? {} : { topology };
}

/** Keeps omitted members omitted, as in older records. */
function interruptions(sent: SentRunPolicy) {
  const { interruptible, interruptibleFailureThreshold, maxRuntimeMs, moveAfterMs, backfill } = sent;
  return {
    ...(maxRuntimeMs === undefined ? {} : { maxRuntimeMs }),
    ...(moveAfterMs === undefined ? {} : { moveAfterMs }),
    ...(backfill ? { backfill } : {}),
    ...(interruptible ? { interruptible } : {}),
    ...(interruptibleFailureThreshold === undefined ? {} : { interruptibleFailureThreshold }),
  };
}

function defaultRunPolicy(sent: SentRunPolicy, total: number, context: DefaultsContext): RunPolicy {
  const { defaults } = context.kind;
  return {
    ...cleanPodPolicies(sent, defaults),
    ttlSecondsAfterFinished: sent.ttlSecondsAfterFinished ?? null,
    activeDeadlineSeconds: sent.activeDeadlineSeconds ?? null,
    backoffLimit: sent.backoffLimit ?? defaults.backoffLimit,
    systemBackoffLimit: sent.systemBackoffLimit ?? SYSTEM_BACKOFF_LIMIT,
    startBackoffLimit: sent.startBackoffLimit ?? START_BACKOFF_LIMIT,
    restartScope: sent.restartScope ?? defaults.restartScope,
    suspend: sent.suspend ?? false,
    ...interruptions(sent),
    ...cacheKeyOf(sent),
    schedulingPolicy: defaultScheduling(sent, total, context),
  };
}

/**
 * A policy that was written also counts at limits. Without one, a limit frees what the job uses: pods that run or are
 * pending are deleted. Source: training-operator up to 1.9.3, which deletes all pods at the backoff limit.
 */
function cleanPodPolicies({ cleanPodPolicy, cleanPodPolicyAtLimit }: SentRunPolicy, defaults: KindDefaults) {
  return {
    cleanPodPolicy: cleanPodPolicy ?? defaults.cleanPodPolicy ?? "None",
    cleanPodPolicyAtLimit: cleanPodPolicyAtLimit ?? cleanPodPolicy ?? "Running",
  } as const;
}

function defaultScheduling(
  sent: SentRunPolicy,
  total: number,
  context: DefaultsContext,
): RunPolicy["schedulingPolicy"] {
  const { minResources, priorityClass, maxPreemptions, partial, ...policy } = sent.schedulingPolicy ?? {};
  const { minAvailable = total, scheduleTimeoutSeconds = SCHEDULE_TIMEOUT_SECONDS } = policy;
  return {
    minAvailable,
    queue: queueOf({ kind: "", replicaSpecs: {}, runPolicy: sent }, context),
    ...(minResources === undefined ? {} : { minResources }),
    ...(priorityClass ? { priorityClass } : {}),
    ...(maxPreemptions === undefined ? {} : { maxPreemptions }),
    ...(partial === undefined ? {} : { partial }),
    scheduleTimeoutSeconds,
    ...(policy.scheduleTimeoutSeconds === undefined ? { isTimeoutDefault: true as const } : {}),
  };
}

/** An empty key counts as no key. */
function cacheKeyOf({ cacheKey }: SentRunPolicy): Pick<RunPolicy, "cacheKey"> {
  return cacheKey ? { cacheKey } : {};
}
