import type { JsonObject } from "../../runtime/json.ts";
import type { JobEvent } from "../job/event.ts";
import type { Admission, JobStatus } from "../job/status.ts";

/** One change to a cluster. It can be derived again from the record, and doing it twice is harmless. */
export type Action = {
  readonly cluster: string;
  readonly namespace: string;
} & (
  | { readonly kind: "createAnchor"; readonly manifest: JsonObject }
  /**
   * Waits for the anchor, whose uid becomes the controlling owner. Fails if the anchor is gone or is being deleted. A
   * part is an object that a kind needs beside pods and services. `createPart` and `updatePart` both create a part that
   * does not exist, and change one that differs from a newer record. Config maps come after the other parts have
   * succeeded.
   */
  | {
      readonly kind: "createPod" | "createService" | "createPart" | "updatePart" | "createPodGroup";
      readonly anchor: string;
      readonly manifest: JsonObject;
    }
  /** Only the object with that uid is changed or deleted, never a later one of the same name. */
  | { readonly kind: "updatePodGroup"; readonly name: string; readonly uid: string; readonly manifest: JsonObject }
  | { readonly kind: "deletePodGroup"; readonly name: string; readonly uid: string; readonly apiVersion: string }
  | { readonly kind: "deleteService" | "deleteConfigMap" | "deleteAnchor"; readonly name: string; readonly uid: string }
  /** `force`: deletes it without waiting for its lost node. Omitted: the kubelet ends the pod. */
  | { readonly kind: "deletePod"; readonly name: string; readonly uid: string; readonly force?: boolean }
);

/**
 * How an action on a cluster ended. `already`: nothing was to be done, since the object exists and is ours, or is gone.
 * Only `failed` is tried again soon.
 */
export type ActOutcome =
  | { readonly kind: "done" }
  | { readonly kind: "already" }
  | {
      readonly kind: "failed";
      /**
       * As Kubernetes says it: `AlreadyExists`, `Forbidden`, `Invalid`, `TooManyRequests`, `Conflict`, …; or
       * `Unreachable` if the server did not answer.
       */
      readonly reason: string;
      readonly message: string;
      /** How long the server asks us to wait before the next call. Null or omitted: it does not say. */
      readonly retryAfterMs?: number | null;
    };

/** A step's decision: what to record, what to do afterwards, and when to look again. */
export type Decision = {
  /** The next status and admissions. Null: the record stays as it is, and nothing is written. */
  readonly record: {
    readonly status: JobStatus;
    readonly admissions: readonly Admission[];
    readonly events: readonly JobEvent[];
    /** Set when the job's time to live is over, which deletes it as DeleteJob would. Otherwise unchanged. */
    readonly deleteTimeMs: number | null;
  } | null;
  /** True for a deleted job of which nothing is left: its record is removed, and `record` is null. */
  readonly forget: boolean;
  /** In this order, an anchor before the objects that it owns. Pods may be created concurrently. */
  readonly actions: readonly Action[];
  /** When to look again without any event. Null: only after an event. */
  readonly recheckAtMs: number | null;
};

/**
 * The outcome of recording a decision. `stale`: the job has changed since it was loaded. `leaseLost`: another worker
 * holds the job's bucket. Both leave the job as it is.
 */
export type RecordOutcome = "recorded" | "stale" | "leaseLost";

/**
 * Events of a job to show in one cluster. There they are about the anchor, the object that represents the admission.
 */
export type AnchorEvents = {
  readonly cluster: string;
  readonly namespace: string;
  readonly anchor: string;
  readonly jobUid: string;
  readonly events: readonly JobEvent[];
};
