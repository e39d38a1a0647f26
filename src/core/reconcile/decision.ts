import type { JsonObject } from "../../runtime/json.ts";
import type { Admission, JobStatus } from "../job/status.ts";
import type { GangScheduler } from "../pods/pod-group.ts";
import type { PodView } from "../pods/pod-view.ts";

/** An object of a job beside its pods, as far as decisions need it. */
export type ObjectView = {
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly controllerUid: string | null;
  readonly admission: number;
  readonly deleting: boolean;
};

/** A config map of a job, and its `data` as canonical JSON. */
export type ConfigMapView = ObjectView & { readonly data: string };

/** A PodGroup of a job: what its scheduler says of it, and the spec that we asked for, as canonical JSON. */
export type PodGroupView = ObjectView & { readonly phase: string; readonly asked: string };

/** What a worker's reflectors see of one job in one cluster; stale by as much as the cluster's watch lags. */
export type ObservedCluster = {
  readonly cluster: string;
  /** Pods that carry the job's uid, and pods that hold one of its pods' names without it. */
  readonly pods: readonly PodView[];
  /** How pods were last seen that the platform took away and that went a moment ago; absent: none. */
  readonly lost?: readonly PodView[];
  readonly services: readonly ObjectView[];
  /** Config maps of this job: anchors of its admissions, and what its kind made for them (see `anchoredMaps`). */
  readonly configMaps: readonly ConfigMapView[];
  /** The cluster's gang scheduler and the PodGroups of this job; absent where it has none. */
  readonly gang?: { readonly scheduler: GangScheduler; readonly groups: readonly PodGroupView[] };
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
  /**
   * Waits for the anchor, whose uid becomes the controlling owner; refused where the anchor is gone or is being deleted. A part is what a kind
   * wants beside pods and services; one that is there and differs from what a newer record wants is changed, whichever of the two is asked for,
   * and made if an update does not find it. Config maps come after the other parts have succeeded.
   */
  | {
      readonly kind: "createPod" | "createService" | "createPart" | "updatePart" | "createPodGroup";
      readonly anchor: string;
      readonly manifest: JsonObject;
    }
  /** Only the object of that uid is changed or deleted, never its successor of the same name. */
  | { readonly kind: "updatePodGroup"; readonly name: string; readonly uid: string; readonly manifest: JsonObject }
  | { readonly kind: "deletePodGroup"; readonly name: string; readonly uid: string; readonly apiVersion: string }
  | { readonly kind: "deleteService" | "deleteConfigMap" | "deleteAnchor"; readonly name: string; readonly uid: string }
  /** `force`: without waiting for the node, which is lost; absent: the kubelet ends it in its own time. */
  | { readonly kind: "deletePod"; readonly name: string; readonly uid: string; readonly force?: boolean }
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
