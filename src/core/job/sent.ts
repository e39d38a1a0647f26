import type { JsonObject } from "../../runtime/json.ts";
import type { CleanPodPolicy, RestartPolicy, RestartScope } from "./spec.ts";

/** A replica spec as a client sent it: what is absent gets the kind's default. */
export type SentReplicaSpec = {
  readonly replicas?: number;
  readonly template?: JsonObject;
  readonly restartPolicy?: RestartPolicy;
};

export type SentSchedulingPolicy = {
  readonly minAvailable?: number;
  readonly queue?: string;
  readonly minResources?: Readonly<Record<string, string>>;
  readonly priorityClass?: string;
  readonly scheduleTimeoutSeconds?: number;
};

export type SentRunPolicy = {
  readonly cleanPodPolicy?: CleanPodPolicy;
  readonly ttlSecondsAfterFinished?: number;
  readonly activeDeadlineSeconds?: number;
  readonly backoffLimit?: number;
  readonly systemBackoffLimit?: number;
  readonly interruptibleFailureThreshold?: number;
  readonly restartScope?: RestartScope;
  readonly suspend?: boolean;
  readonly interruptible?: boolean;
  readonly cacheKey?: string;
  readonly schedulingPolicy?: SentSchedulingPolicy;
};

export type SentSpec = {
  readonly kind: string;
  /** By replica type as the sender spells it; any case. */
  readonly replicaSpecs: Readonly<Record<string, SentReplicaSpec>>;
  readonly runPolicy?: SentRunPolicy;
  readonly kindSpec?: JsonObject;
  readonly inputs?: JsonObject;
  readonly priority?: number;
  readonly placement?: {
    readonly clusters?: readonly string[];
    readonly clusterSelector?: Readonly<Record<string, string>>;
    readonly gpuModels?: readonly string[];
  };
};

/** A job as a client sent it, before defaults: what exactly-once creation compares, as canonical JSON. */
export type SentJob = {
  readonly namespace: string;
  /** Empty where `generateName` is given. */
  readonly name: string;
  readonly generateName: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: SentSpec;
};

/** Something said about one field of a request: its path in the request's own names, and what is wrong or odd. */
export type FieldNote = { readonly field: string; readonly message: string };

/** What is wrong with one field of a spec: its path in the words of manifests, from their root. */
export type FieldError = { readonly path: string; readonly message: string };
