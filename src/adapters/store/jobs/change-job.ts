import type { JobEvent } from "../../../core/job/event.ts";
import type { Job } from "../../../core/job/job.ts";
import { endsNomination } from "../../../core/job/nomination.ts";
import type { SentJob } from "../../../core/job/request/sent.ts";
import { bareSpec } from "../../../core/job/spec.ts";
import type { NoRoom } from "../../../core/job/tenant-limits.ts";
import { appendAudit } from "../admin/audit.ts";
import { type Db, type Executor, json } from "../db/db.ts";
import { changeHeirs } from "../ledger/give-back.ts";
import { appendChanges } from "./append.ts";
import { updatedNote } from "./audit-job.ts";
import { findNoRoomToGrow, lockJobLimitsToGrow } from "./job-limits.ts";
import { lockJobByName } from "./load-job.ts";
import { type ChangeTime, updateJob } from "./write-job.ts";

/**
 * Decides about a job as it is now, while its row is locked. Also gets the job as its client sent it. Called again if
 * the transaction lost a race.
 */
export type DecideChange<Other> = (job: Job, sent: SentJob) => Change | Other;

/**
 * Changes a job's spec and labels as `decide` says. If `decide` returns anything but a change, writes nothing and
 * returns that. So it does if the namespace or the project has no room for the pods that the change adds.
 */
export function changeJob<Other extends { readonly kind: string }>(
  db: Db,
  which: { readonly namespace: string; readonly name: string },
  decide: DecideChange<Other>,
  { nowMs, kinds }: ChangeTime,
): Promise<ReturnType<DecideChange<Other>> | { readonly kind: "notFound" } | NoRoom> {
  return db.tx(async (tx) => {
    const rooms = await lockJobLimitsToGrow(tx, which);
    const before = await lockJobByName(tx, which);
    if (before === null) return { kind: "notFound" };
    const [row] = await tx.query<{ sent: SentJob }>("select sent from jobs where uid = $1", [before.uid]);
    if (row === undefined) return { kind: "notFound" };
    const decided = decide(before, row.sent);
    if (!isChange(decided)) return decided;
    const { job: after, event } = decided;
    const noRoom = findNoRoomToGrow(before, after, rooms);
    if (noRoom !== null) return noRoom;
    await writeSpec(tx, after);
    if (decided.sent !== undefined) await tx.query(WRITE_SENT, [after.uid, json(decided.sent)]);
    await updateJob(tx, { before, after, recheckAtMs: nowMs }, kinds);
    await appendChanges(tx, [{ before, after, events: [event] }], nowMs);
    if (endsNomination(before, after)) await changeHeirs(tx, { named: [], withdrawn: [after.uid] }, nowMs);
    await appendAudit(tx, updatedNote(before, after, nowMs));
    return decided;
  });
}

/** `sent`: as the client would have sent the job now. Omitted: as before. */
type Change = {
  readonly kind: "changed";
  readonly job: Job;
  readonly event: JobEvent;
  readonly sent?: SentJob;
};

function isChange(decided: { readonly kind: string }): decided is Change {
  return decided.kind === "changed";
}

async function writeSpec(tx: Executor, { uid, spec, labels }: Job): Promise<void> {
  await tx.query(WRITE_SPEC, [uid, json(spec), spec.priority, json(labels), json(bareSpec(spec))]);
}

const WRITE_SENT = "update jobs set sent = $2::json where uid = $1";

const WRITE_SPEC = `
update jobs
   set spec = $2::json, outline = $5::json, spec_bytes = octet_length($2::text), priority = $3, labels = $4::jsonb
 where uid = $1`;
