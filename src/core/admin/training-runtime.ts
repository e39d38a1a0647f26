/** What administrators of namespaces and of the installation do with training runtimes. */
import type { RuntimeSettings, TrainingRuntime } from "../kinds/trainjob/training-runtime.ts";
import type { PageRequest } from "../quota/admin.ts";
import type { ChangeOutcome } from "./change-outcome.ts";

/** Replaces the labels and the spec. */
export type RuntimeChange = RuntimeSettings & {
  /** The version that the change expects. 0: any version. */
  readonly version: number;
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
