import type { JsonObject } from "../../runtime/json.ts";
import type { Admission, JobStatus } from "../job/status.ts";
import type { PodView } from "../pods/pod-view.ts";

/** A service or config map of a job, as far as decisions need it. */
export type ObjectView = {
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly controllerUid: string | null;
  readonly admission: number;
  readonly deleting: boolean;
};

/** What a worker's reflectors see of one job in one cluster; stale by as much as the cluster's watch lags. */
export type ObservedCluster = {
  readonly cluster: string;
  /** Pods that carry the job's uid, and pods that hold one of its pods' names without it. */
  readonly pods: readonly PodView[];
  readonly services: readonly ObjectView[];
  /** Anchors of this job's admissions. */
  readonly anchors: readonly ObjectView[];
};

/**
 * Everything that was seen of a job, one entry for each cluster that its admissions name or that holds anything of it. A cluster whose
 * reflectors have not completed a list has no entry: then nothing is decided about what is there.
 */
export type Observed = readonly ObservedCluster[];

/** One change to a cluster. Each can be derived again from the record, and doing it twice is harmless. */
export type Action = {
  readonly cluster: string;
  readonly namespace: string;
} & (
  | { readonly kind: "createAnchor"; readonly manifest: JsonObject }
  /** Waits for the anchor, whose uid becomes the controlling owner; refused where the anchor is gone or is being deleted. */
  | { readonly kind: "createPod" | "createService"; readonly anchor: string; readonly manifest: JsonObject }
  /** Only the object of that uid is deleted, never its successor of the same name. */
  | { readonly kind: "deletePod" | "deleteService" | "deleteAnchor"; readonly name: string; readonly uid: string }
);

export type JobEvent = {
  readonly type: "Normal" | "Warning";
  /** CamelCase, e.g. `PyTorchJobRunning`, `SuccessfulCreatePod`. */
  readonly reason: string;
  readonly message: string;
};

/** What a step does: what is recorded, what is done after that, and when to look again. */
export type Decision = {
  /** The next status and admissions; null if nothing of the record changes, and then nothing is written. */
  readonly record: {
    readonly status: JobStatus;
    readonly admissions: readonly Admission[];
    readonly events: readonly JobEvent[];
    /** Set when the job's time to live is over, which deletes it as DeleteJob would; else as it was. */
    readonly deleteTimeMs: number | null;
  } | null;
  /** A deleted job of which nothing is left: its record goes, instead of `record`. */
  readonly forget: boolean;
  /** In order: anchors before what they own. Pods may be created concurrently. */
  readonly actions: readonly Action[];
  /** When to look again even if nothing is heard; null: only when something is heard. */
  readonly recheckAtMs: number | null;
};
