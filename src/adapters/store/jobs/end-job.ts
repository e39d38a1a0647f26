import { applyCancel, applyDelete } from "../../../core/job/create-and-end.ts";
import type { JobEvent } from "../../../core/job/event.ts";
import type { Job } from "../../../core/job/job.ts";
import type { EndOutcome, JobName } from "../../../core/job/requests.ts";
import type { Db } from "../db/db.ts";
import { appendChanges } from "./append.ts";
import { lockJobByName } from "./load-job.ts";
import { type ChangeTime, updateJob } from "./write-job.ts";

/** Records that a job is to be cancelled. */
export function requestCancel(db: Db, name: JobName, reason: string, at: ChangeTime): Promise<EndOutcome> {
  return requestEnd(db, name, (job) => applyCancel(job, { reason, nowMs: at.nowMs }), at);
}

/** Records that a job is to be deleted. */
export function requestDelete(db: Db, name: JobName, at: ChangeTime): Promise<EndOutcome> {
  return requestEnd(db, name, (job) => applyDelete(job, at.nowMs), at);
}

function requestEnd(
  db: Db,
  name: JobName,
  apply: (job: Job) => Exclude<EndOutcome, { kind: "notFound" }> & { readonly event?: JobEvent },
  { nowMs, kinds }: ChangeTime,
): Promise<EndOutcome> {
  return db.tx(async (tx) => {
    const before = await lockJobByName(tx, name);
    if (before === null) return { kind: "notFound" };
    const { event, ...outcome } = apply(before);
    if (event !== undefined) {
      await updateJob(tx, { before, after: outcome.job, recheckAtMs: nowMs }, kinds);
      await appendChanges(tx, [{ before, after: outcome.job, events: [event] }], nowMs);
    }
    return outcome;
  });
}
