import type { JsonObject } from "../../../runtime/json.ts";
import type { TopologyWish } from "../placement/topology-wish.ts";
import type { CleanPodPolicy, PartialPolicy, RestartPolicy, RestartScope } from "../spec.ts";

/** A replica spec from a client. Omitted members get the defaults of the kind. */
export type SentReplicaSpec = {
  readonly replicas?: number;
  readonly template?: JsonObject;
  readonly restartPolicy?: RestartPolicy;
  /** Omitted: as the annotations of Kueue in the template say. */
  readonly topology?: TopologyWish;
};

export type SentSchedulingPolicy = {
  readonly minAvailable?: number;
  readonly queue?: string;
  readonly minResources?: Readonly<Record<string, string>>;
  readonly priorityClass?: string;
  readonly scheduleTimeoutSeconds?: number;
  readonly maxPreemptions?: number;
  readonly partial?: PartialPolicy;
};

export type SentRunPolicy = {
  readonly cleanPodPolicy?: CleanPodPolicy;
  readonly cleanPodPolicyAtLimit?: CleanPodPolicy;
  readonly ttlSecondsAfterFinished?: number;
  readonly activeDeadlineSeconds?: number;
  readonly backoffLimit?: number;
  readonly systemBackoffLimit?: number;
  readonly startBackoffLimit?: number;
  readonly interruptibleFailureThreshold?: number;
  readonly restartScope?: RestartScope;
  readonly suspend?: boolean;
  readonly interruptible?: boolean;
  readonly maxRuntimeMs?: number;
  readonly moveAfterMs?: number;
  readonly backfill?: boolean;
  readonly cacheKey?: string;
  readonly schedulingPolicy?: SentSchedulingPolicy;
};

export type SentSpec = {
  readonly kind: string;
  /** By replica type, in any case. */
  readonly replicaSpecs: Readonly<Record<string, SentReplicaSpec>>;
  readonly runPolicy?: SentRunPolicy;
  readonly kindSpec?: JsonObject;
  readonly inputs?: JsonObject;
  readonly priority?: number;
  readonly priorityClassName?: string;
  readonly placement?: {
    readonly clusters?: readonly string[];
    readonly clusterSelector?: Readonly<Record<string, string>>;
    readonly gpuModels?: readonly string[];
    readonly topology?: TopologyWish;
  };
};

/** A job from a client, before defaults. Exactly-once creation compares it as canonical JSON. */
export type SentJob = {
  readonly namespace: string;
  /** Empty if `generateName` is set. */
  readonly name: string;
  readonly generateName: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: SentSpec;
};

/**
 * An error or, if so marked, a warning about one field of a request. `field`: its path in the request. `more`: how many
 * notes this one stands for, which are not told; omitted: it is one.
 */
export type FieldNote = {
  readonly field: string;
  readonly message: string;
  readonly isWarning?: true;
  readonly more?: number;
};

/** An error in one field of a spec. The path is that of a manifest, from its root. `more`: as in a `FieldNote`. */
export type FieldError = { readonly path: string; readonly message: string; readonly more?: number };

/** The errors and warnings about a template. Paths start at the template, such as `spec.containers[0].image`. */
export type TemplateFindings = { readonly errors: readonly FieldError[]; readonly warnings: readonly FieldError[] };
