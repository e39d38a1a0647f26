import type { JsonObject } from "../../runtime/json.ts";
import type { CleanPodPolicy, Placement, RestartPolicy, RestartScope } from "./spec.ts";

export type SentReplicaSpec = {
  readonly replicas?: number;
  readonly restartPolicy?: RestartPolicy;
  readonly template?: JsonObject;
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
  readonly restartScope?: RestartScope;
  readonly suspend?: boolean;
  readonly schedulingPolicy?: SentSchedulingPolicy;
};

/** A job's spec as its sender wrote it, before defaults: what a create is compared by, so nothing is filled in here. */
export type SentSpec = {
  readonly kind: string;
  /** By replica type as the sender spells it; any case. */
  readonly replicaSpecs: Readonly<Record<string, SentReplicaSpec>>;
  readonly runPolicy?: SentRunPolicy;
  readonly kindSpec?: JsonObject;
  readonly priority?: number;
  readonly placement?: Partial<Placement>;
};

/** What is wrong with one field of a request or manifest. */
export type FieldError = {
  /** From the document's root: `spec.containers[0].image`. */
  readonly path: string;
  readonly message: string;
};
