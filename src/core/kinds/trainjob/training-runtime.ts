/**
 * Training runtimes: templates of jobs that TrainJobs name. A TrainingRuntime belongs to a namespace, a
 * ClusterTrainingRuntime to the whole installation. Source: `trainer.kubeflow.org/v1alpha1` of Kubeflow Trainer.
 */
import type { JsonObject } from "../../../runtime/json.ts";

export const TRAINER_GROUP = "trainer.kubeflow.org";
export const TRAINER_API_VERSION = `${TRAINER_GROUP}/v1alpha1`;

/** The label of a job of a runtime's template that says which part of a TrainJob it has. */
export const ANCESTOR_STEP = `${TRAINER_GROUP}/trainjob-ancestor-step`;

/** The parts of a TrainJob. Jobs and containers of initializers have the same names. */
export const TRAINER_STEP = "trainer";
export const DATASET_STEP = "dataset-initializer";
export const MODEL_STEP = "model-initializer";

/** The container of the trainer's job that a TrainJob changes, and the name of the job of the nodes. */
export const NODE = "node";

/** The volume that initializers fill, and the trainer reads. */
export const INITIALIZER_VOLUME = "initializer";

/** Each part of a TrainJob, with the container that it changes. */
export const STEP_CONTAINERS = {
  [TRAINER_STEP]: NODE,
  [DATASET_STEP]: DATASET_STEP,
  [MODEL_STEP]: MODEL_STEP,
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

/**
 * The runtime of this name, whole. An empty namespace names one of the installation, shipped ones included. Null: there
 * is none.
 */
export type FindRuntime = (of: RuntimeName) => Promise<TrainingRuntime | null>;

/** The kinds of manifests of runtimes. */
export const RUNTIME_KINDS = ["ClusterTrainingRuntime", "TrainingRuntime"] as const;

export function runtimeKind({ namespace }: RuntimeName): (typeof RUNTIME_KINDS)[number] {
  return namespace === "" ? "ClusterTrainingRuntime" : "TrainingRuntime";
}

/** `NAMESPACE/NAME`, or the name alone for a runtime of the installation. */
export function runtimeText({ namespace, name }: RuntimeName): string {
  return namespace === "" ? name : `${namespace}/${name}`;
}
