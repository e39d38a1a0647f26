/** Requests that create, change and end a job, and their outcomes. The API, intake and the store share them. */

import type { ServedCall } from "../../../runtime/served-call.ts";
import type { Job } from "../job.ts";
import type { NoRoom } from "../tenant-limits.ts";
import type { FieldNote, SentJob } from "./sent.ts";

/** Identifies a job while it exists. A later job may have the same name. */
export type JobName = { readonly namespace: string; readonly name: string };

/** A job that a client submits. */
export type Submission = {
  readonly job: SentJob;
  /** Empty: none. */
  readonly requestId: string;
  /** Answers as the real call would, and changes nothing. */
  readonly validateOnly: boolean;
  /** Warnings become errors. */
  readonly strict: boolean;
  readonly createdBy: string;
  /** What the caller may do with a queue. Omitted: it may use every queue. */
  readonly queueAccess?: QueueAccess;
  /** Whether the caller may see a cluster. Omitted: it may see every cluster. */
  readonly seesCluster?: (name: string) => boolean;
  /** As in `NewJob`. */
  readonly call?: ServedCall | null;
};

/** `hidden`: the caller may not see the queue, so that it does not exist for it. */
export type QueueAccess = (queue: string) => "use" | "see" | "hidden";

/** The outcome of a submission. Violations and warnings name fields by their paths in the request. */
export type SubmitOutcome =
  | {
      readonly kind: "created" | "replayed" | "unchanged" | "valid";
      readonly job: Job;
      readonly warnings: readonly FieldNote[];
    }
  | { readonly kind: "invalid"; readonly violations: readonly FieldNote[]; readonly warnings: readonly FieldNote[] }
  | { readonly kind: "unknownNamespace"; readonly namespace: string }
  /** The caller may see the queue of the job, and may not use it. */
  | { readonly kind: "deniedQueue"; readonly queue: string }
  | TooManyNamespaces
  | NoRoom
  | { readonly kind: "nameTaken" | "requestIdReused"; readonly difference: string }
  | { readonly kind: "madeAndDeleted"; readonly uid: string }
  | { readonly kind: "beingDeleted" };

/** The job that a submission would create, or why it would be refused. */
export type MadeJob =
  | { readonly kind: "made"; readonly job: Job; readonly warnings: readonly FieldNote[] }
  | { readonly kind: "refused"; readonly answer: SubmitOutcome };

/** The job would create its namespace, and there are as many namespaces as there may be. */
export type TooManyNamespaces = { readonly kind: "tooManyNamespaces"; readonly max: number };

/** The outcome of one submission of a batch. `failed`: the error that a single call would have thrown. */
export type BatchSubmitOutcome = SubmitOutcome | { readonly kind: "failed"; readonly error: unknown };

/** A job that is ready to be recorded. Its version is 1, its phase WAITING, its condition Created True. */
export type NewJob = {
  readonly job: Job;
  readonly sent: SentJob;
  /** Empty: none. */
  readonly requestId: string;
  /** Answers as the real call would, and changes nothing. Omitted: false. */
  readonly dryRun?: boolean;
  /** The call that the audit log names. Omitted or null: the one that the running code serves. */
  readonly call?: ServedCall | null;
};

export type CreatedJob = { readonly kind: "created"; readonly job: Job };

/** The outcome of recording a new job. */
export type CreateOutcome =
  | { readonly kind: "created" | "replayed" | "unchanged"; readonly job: Job }
  /** A job with another spec has the name, or the request id was used with another payload. `sent`: that payload. */
  | { readonly kind: "nameTaken" | "requestIdReused"; readonly sent: SentJob }
  /** The request id created a job that has been deleted since. */
  | { readonly kind: "madeAndDeleted"; readonly uid: string }
  /** A job of that name is being deleted. */
  | { readonly kind: "beingDeleted" }
  | TooManyNamespaces
  | NoRoom;

/** The job's namespace or queue was deleted after the job was checked, so it has to be checked again. */
export type OutdatedCheck = { readonly kind: "outdated" };

/** The outcome of an update of a job. Violations name fields by their paths in the request. */
export type UpdateOutcome =
  /** `terminal`: the job has ended. `ending`: its cancellation or deletion was requested. */
  | { readonly kind: "changed" | "unchanged" | "terminal" | "ending"; readonly job: Job }
  /** `stale`: the job has another version than the update names. */
  | { readonly kind: "notFound" | "stale" }
  /** The job was set aside, and was resumed as often within a day as the caller may. */
  | { readonly kind: "resumedTooOften" }
  /** The job is admitted, and its kind cannot resize this replica type until the job waits again. */
  | { readonly kind: "fixedSize"; readonly role: string }
  /** The job is not suspended, or pods of it are left, so its templates stay. */
  | { readonly kind: "fixedTemplates" }
  | NoRoom
  | { readonly kind: "invalid"; readonly violations: readonly FieldNote[] };

/** The outcome of a request to cancel or delete a job. */
export type EndOutcome =
  | { readonly kind: "cancelled" | "deleting" | "already"; readonly job: Job }
  | { readonly kind: "notFound" }
  /** The job had ended before it could be cancelled. */
  | { readonly kind: "terminal"; readonly job: Job };
