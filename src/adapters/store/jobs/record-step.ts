import { type AdmissionChanges, admissionChanges } from "../../../core/job/admission-changes.ts";
import type { BucketLease } from "../../../core/job/bucket.ts";
import { deletedEvent } from "../../../core/job/create-and-end.ts";
import { endedAttempt } from "../../../core/job/ended-attempt.ts";
import type { Job } from "../../../core/job/job.ts";
import type { Decision, RecordOutcome } from "../../../core/reconcile/decision.ts";
import { type Db, type Executor, undoable } from "../db/db.ts";
import { releaseAdmissions } from "../ledger/release-tokens.ts";
import { shrinkTokens } from "../ledger/shrink-tokens.ts";
import { appendChanges } from "./append.ts";
import { type ChangeTime, updateJob, writeAdmissions } from "./write-job.ts";

/**
 * Records a worker's decision about the job as it was read. Records nothing if the job has moved on (`stale`), or if
 * another worker holds its bucket (`leaseLost`). A decision without a record only moves the time to look again.
 */
export function recordStep(
  db: Db,
  job: Job,
  decision: Decision,
  lease: BucketLease,
  { nowMs, kinds }: ChangeTime,
): Promise<RecordOutcome> {
  return undoable<RecordOutcome>(db, async (tx, undo) => {
    const guarded = await guard(tx, job, lease);
    if (guarded !== "recorded") return undo(guarded);
    if (decision.forget) {
      await forget(tx, job, nowMs);
      return guarded;
    }
    const { record } = decision;
    if (record === null) {
      await tx.query("update jobs set recheck_at_ms = $2 where uid = $1", [job.uid, decision.recheckAtMs]);
      return guarded;
    }
    const after: Job = {
      ...job,
      status: record.status,
      admissions: record.admissions,
      deleteTimeMs: record.deleteTimeMs,
      version: job.version + 1,
    };
    await updateJob(tx, { before: job, after, recheckAtMs: decision.recheckAtMs }, kinds);
    await recordAdmissions(tx, job, admissionChanges(job.admissions, record.admissions, nowMs), nowMs);
    const ended = endedAttempt(job.status.plugin, record.status.plugin);
    if (ended !== null) await releaseAdmissions(tx, job.uid, [ended], nowMs);
    await appendChanges(tx, [{ before: job, after, events: record.events }], nowMs);
    return guarded;
  });
}

/**
 * Locks the job's row at its version under the bucket's epoch, until the transaction ends. The key-share lock on the
 * bucket's lease allows its holder to renew it. A take-over changes the epoch, which is part of a key, so it waits
 * until the record is done; a record that waited for a take-over finds the epoch gone.
 */
async function guard(tx: Executor, job: Job, lease: BucketLease): Promise<RecordOutcome> {
  const [found] = await tx.query<{ recorded: boolean; leased: boolean }>(GUARD, [
    job.uid,
    job.version,
    lease.bucket,
    lease.epoch,
  ]);
  if (found?.leased !== true) return "leaseLost";
  return found.recorded ? "recorded" : "stale";
}

const GUARD = `
with lease as (
  select 1 from bucket_leases where bucket = $3 and epoch = $4 for key share
), job as (
  select 1 from jobs
   where uid = $1 and version = $2 and bucket = $3 and exists (select from lease)
     for update
)
select exists (select from job) as recorded, exists (select from lease) as leased`;

/** Writes the admissions that changed, and their effects on tokens and clusters. */
async function recordAdmissions(
  tx: Executor,
  job: Job,
  { changed, released, shrunk, gone }: AdmissionChanges,
  nowMs: number,
): Promise<void> {
  await writeAdmissions(tx, job.uid, changed);
  await releaseAdmissions(tx, job.uid, released, nowMs);
  for (const admission of shrunk) await shrinkTokens(tx, { jobUid: job.uid, spec: job.spec, admission, nowMs });
  if (gone.length > 0) await tx.query(CLEAR_CLUSTERS, [job.uid, gone]);
}

const CLEAR_CLUSTERS = "delete from admission_clusters where job_uid = $1 and admission = any($2::int[])";

/** Removes the job's record and keeps its events. Releases all its tokens first, so that no token outlives its job. */
async function forget(tx: Executor, job: Job, nowMs: number): Promise<void> {
  const admissions = await tx.query<{ number: number }>("select number from admissions where job_uid = $1", [job.uid]);
  await releaseAdmissions(
    tx,
    job.uid,
    admissions.map((admission) => admission.number),
    nowMs,
  );
  await tx.query("delete from jobs where uid = $1", [job.uid]);
  await tx.query("delete from admissions where job_uid = $1", [job.uid]);
  await appendChanges(tx, [{ before: job, after: null, events: [deletedEvent(job)] }], nowMs);
}
