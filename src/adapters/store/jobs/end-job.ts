import type { JobEvent } from "../../../core/job/event.ts";
import type { Job } from "../../../core/job/job.ts";
import { endsNomination } from "../../../core/job/nomination.ts";
import { applyCancel, applyDelete } from "../../../core/job/request/create-and-end.ts";
import type { EndOutcome, JobName } from "../../../core/job/request/requests.ts";
import { appendAudit } from "../admin/audit.ts";
import type { Db } from "../db/db.ts";
import { changeHeirs } from "../ledger/give-back.ts";
import { appendChanges } from "./append.ts";
import { endedNote } from "./audit-job.ts";
import { lockJobByName } from "./load-job.ts";
import { type ChangeTime, updateJob } from "./write-job.ts";

/** Records that a job is to be cancelled. */
export function requestCancel(db: Db, name: JobName, reason: string, at: ChangeTime): Promise<EndOutcome> {
  const apply = (job: Job) => applyCancel(job, { reason, nowMs: at.nowMs });
  return requestEnd(db, name, { apply, action: "CancelJob", reason }, at);
}

/** Records that a job is to be deleted. */
export function requestDelete(db: Db, name: JobName, at: ChangeTime): Promise<EndOutcome> {
  const apply = (job: Job) => applyDelete(job, at.nowMs);
  return requestEnd(db, name, { apply, action: "DeleteJob", reason: "" }, at);
}

function requestEnd(
  db: Db,
  name: JobName,
  {
    apply,
    action,
    reason,
  }: {
    readonly apply: (job: Job) => Exclude<EndOutcome, { kind: "notFound" }> & { readonly event?: JobEvent };
    readonly action: "CancelJob" | "DeleteJob";
    readonly reason: string;
  },
  { nowMs, kinds }: ChangeTime,
): Promise<EndOutcome> {
  return db.tx(async (tx) => {
    const before = await lockJobByName(tx, name);
    if (before === null) return { kind: "notFound" };
    const { event, ...outcome } = apply(before);
    if (event !== undefined) {
      await updateJob(tx, { before, after: outcome.job, recheckAtMs: nowMs }, kinds);
      await appendChanges(tx, [{ before, after: outcome.job, events: [event] }], nowMs);
      if (endsNomination(before, outcome.job)) await changeHeirs(tx, { named: [], withdrawn: [before.uid] }, nowMs);
      await appendAudit(tx, endedNote(before, { action, reason, timeMs: nowMs }));
    }
    return outcome;
  });
}
