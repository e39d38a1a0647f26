/**
 * Training runtimes: templates of jobs that TrainJobs name. A TrainingRuntime belongs to a namespace, a
 * ClusterTrainingRuntime to the whole installation. Source: `trainer.kubeflow.org/v1alpha1` of Kubeflow Trainer.
 */
import type { JsonObject } from "../../../runtime/json.ts";
import type { ChangeOutcome } from "../../admin/change-outcome.ts";
import type { PageRequest } from "../../quota/admin.ts";

export const TRAINER_API_VERSION = "trainer.kubeflow.org/v1alpha1";

/** The label of a job of a runtime's template that says which part of a TrainJob it has. */
export const ANCESTOR_STEP = "trainer.kubeflow.org/trainjob-ancestor-step";

/** The container of the trainer's job that a TrainJob changes. */
export const TRAINER_CONTAINER = "node";

/** The volume that initializers fill, and the trainer reads. */
export const INITIALIZER_VOLUME = "initializer";

/** Each part of a TrainJob, with the container that it changes. */
export const STEP_CONTAINERS = {
  trainer: TRAINER_CONTAINER,
  "dataset-initializer": "dataset-initializer",
  "model-initializer": "model-initializer",
} as const satisfies Readonly<Record<string, string>>;

/** The names of one runtime. */
export type RuntimeName = {
  /** Empty: a ClusterTrainingRuntime, of the whole installation. */
  readonly namespace: string;
  readonly name: string;
};

/** The part of a runtime that its authors write. */
export type RuntimeSettings = RuntimeName & {
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: JsonObject;
};

export type TrainingRuntime = RuntimeSettings & {
  /** 0 for a shipped runtime. */
  readonly createTimeMs: number;
  /** Grows with every change. 0 for a shipped runtime. */
  readonly version: number;
  /** It belongs to this program, and never changes. */
  readonly isShipped?: true;
};

/** A runtime in a list. */
export type ListedRuntime = Omit<TrainingRuntime, "spec">;

export type RuntimeQuery = PageRequest & {
  /** Lists runtimes of these namespaces; the empty name stands for the installation. Null: of all namespaces. */
  readonly namespaces: readonly string[] | null;
};

/** In the order of namespaces and names. Those of the installation come first. */
export type RuntimePage = { readonly runtimes: readonly ListedRuntime[]; readonly next: string | null };

export type RuntimeOutcome =
  | ChangeOutcome<TrainingRuntime>
  /** The namespace of the runtime does not exist. */
  | { readonly kind: "unknownNamespace" }
  /** A shipped runtime has the name. It cannot be changed, deleted or replaced. */
  | { readonly kind: "shipped" };

/** The most runtimes of a namespace, and the most of the installation beside the shipped ones. */
export const RUNTIMES_MAX = 200;

export function runtimeKind({ namespace }: RuntimeName): "TrainingRuntime" | "ClusterTrainingRuntime" {
  return namespace === "" ? "ClusterTrainingRuntime" : "TrainingRuntime";
}

/** `NAMESPACE/NAME`, or the name alone for a runtime of the installation. */
export function runtimeText({ namespace, name }: RuntimeName): string {
  return namespace === "" ? name : `${namespace}/${name}`;
}
