import type { Job } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/status.ts";
import { appendChanges } from "./append.ts";
import type { Db } from "./db.ts";
import { lockJobByName } from "./load-job.ts";
import { updateJob } from "./write-job.ts";

export type CancelOutcome =
  | { readonly kind: "cancelled" | "deleting" | "already"; readonly job: Job }
  | { readonly kind: "notFound" }
  | { readonly kind: "terminal"; readonly job: Job };

type Which = { readonly namespace: string; readonly name: string };

/** Records that a job is to be cancelled; its worker carries it out. */
export function requestCancel(db: Db, which: Which, reason: string, nowMs: number): Promise<CancelOutcome> {
  return db.tx(async (tx) => {
    const job = await lockJobByName(tx, which);
    if (job === null) return { kind: "notFound" };
    if (job.cancel !== null || job.deleteTimeMs !== null) return { kind: "already", job };
    if (isTerminal(job.status)) return { kind: "terminal", job };
    const after = { ...job, cancel: { reason, atMs: nowMs }, version: job.version + 1 };
    const event = {
      type: "Normal" as const,
      reason: `${job.spec.kind}CancelRequested`,
      message: reason === "" ? "Cancel was requested." : `Cancel was requested: ${reason}`,
    };
    await updateJob(tx, after, nowMs);
    await appendChanges(tx, [{ before: job, after, events: [event] }], nowMs);
    return { kind: "cancelled", job: after };
  });
}

/** Records that a job is to be deleted, whatever its phase; its worker cleans up and forgets it. */
export function requestDelete(db: Db, which: Which, nowMs: number): Promise<CancelOutcome> {
  return db.tx(async (tx) => {
    const job = await lockJobByName(tx, which);
    if (job === null) return { kind: "notFound" };
    if (job.deleteTimeMs !== null) return { kind: "already", job };
    const after = { ...job, deleteTimeMs: nowMs, version: job.version + 1 };
    const event = {
      type: "Normal" as const,
      reason: `${job.spec.kind}DeleteRequested`,
      message: "Delete was requested.",
    };
    await updateJob(tx, after, nowMs);
    await appendChanges(tx, [{ before: job, after, events: [event] }], nowMs);
    return { kind: "deleting", job: after };
  });
}
