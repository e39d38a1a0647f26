import type { JobEvent } from "../event.ts";
import type { Job } from "../job.ts";
import { withoutNomination } from "../nomination.ts";
import { reasonFor } from "../reason-for.ts";
import { isTerminal } from "../status.ts";

/** The event of a new job: reason and message of its condition Created, else those of Kubeflow. */
export function createdEvent(job: Job): JobEvent {
  const created = job.status.conditions.find((condition) => condition.type === "Created");
  return {
    type: "Normal",
    reason: created?.reason ?? reasonFor(job.spec.kind, "Created"),
    message: created?.message ?? `${job.spec.kind} ${job.name} is created.`,
  };
}

/** The outcome of a request to end a job: the changed job with its event, or the unchanged job. */
type AppliedEnd<Kind extends string, Refused extends string> =
  | { readonly kind: Kind; readonly job: Job; readonly event: JobEvent }
  | { readonly kind: Refused; readonly job: Job };

/** Requests that a job is cancelled. Its worker then cancels it. `already`: its end was requested before. */
export function applyCancel(
  job: Job,
  { reason, nowMs }: { readonly reason: string; readonly nowMs: number },
): AppliedEnd<"cancelled", "already" | "terminal"> {
  if (job.cancel !== null || job.deleteTimeMs !== null) return { kind: "already", job };
  if (isTerminal(job.status)) return { kind: "terminal", job };
  const event: JobEvent = {
    type: "Normal",
    reason: reasonFor(job.spec.kind, "CancelRequested"),
    message: reason === "" ? "Cancel was requested." : `Cancel was requested: ${reason}`,
  };
  return { kind: "cancelled", job: { ...ending(job), cancel: { reason, atMs: nowMs } }, event };
}

/** Requests that a job is deleted, in any phase. Its worker then cleans up and removes its record. */
export function applyDelete(job: Job, nowMs: number): AppliedEnd<"deleting", "already"> {
  if (job.deleteTimeMs !== null) return { kind: "already", job };
  const event: JobEvent = {
    type: "Normal",
    reason: reasonFor(job.spec.kind, "DeleteRequested"),
    message: "Delete was requested.",
  };
  return { kind: "deleting", job: { ...ending(job), deleteTimeMs: nowMs }, event };
}

function ending(job: Job): Job {
  return { ...job, status: withoutNomination(job.status), version: job.version + 1 };
}

/** The event of a job whose record is removed. */
export function deletedEvent(job: Job): JobEvent {
  return {
    type: "Normal",
    reason: reasonFor(job.spec.kind, "Deleted"),
    message: `${job.spec.kind} ${job.name} is deleted.`,
  };
}
