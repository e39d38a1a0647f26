import { endedAttempt } from "../../core/job/ended-attempt.ts";
import type { Job } from "../../core/job/job.ts";
import { memberCount } from "../../core/job/roles.ts";
import type { Admission } from "../../core/job/status.ts";
import type { Decision } from "../../core/reconcile/decision.ts";
import { canonicalJson } from "../../runtime/json.ts";
import { appendChanges } from "./append.ts";
import type { BucketLease } from "./buckets.ts";
import { type Db, type Executor, undoable } from "./db.ts";
import { releaseAdmissions } from "./release-tokens.ts";
import { shrinkTokens } from "./shrink-tokens.ts";
import { updateJob, writeAdmissions } from "./write-job.ts";

export type RecordOutcome = "recorded" | "stale" | "leaseLost";

/**
 * Records a worker's decision about the job as it was read: all of it, or nothing where the job has moved on (`stale`) or another worker
 * holds its bucket (`leaseLost`). A decision without a record only moves the time to look again.
 */
export function recordStep(
  db: Db,
  job: Job,
  decision: Decision,
  lease: BucketLease,
  nowMs: number,
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
    const admissions = [...record.admissions, ...dropped(job, record.admissions, nowMs)];
    const after: Job = {
      ...job,
      status: record.status,
      admissions: record.admissions,
      deleteTimeMs: record.deleteTimeMs,
      version: job.version + 1,
    };
    await updateJob(tx, after, decision.recheckAtMs);
    await recordAdmissions(tx, job, admissions, nowMs);
    const ended = endedAttempt(job.status.plugin, record.status.plugin);
    if (ended !== null) await releaseAdmissions(tx, job.uid, [ended], nowMs);
    await appendChanges(tx, [{ before: job, after, events: record.events }], nowMs);
    return guarded;
  });
}

/** Takes the job's row at its version under the bucket's epoch, until the transaction ends. */
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

/** Admissions that a decision no longer names: of them nothing is left. */
function dropped(job: Job, admissions: readonly Admission[], nowMs: number): readonly Admission[] {
  const named = new Set(admissions.map((admission) => admission.number));
  return job.admissions
    .filter((admission) => !named.has(admission.number))
    .map((admission) => ({
      ...admission,
      state: admission.state === "live" ? "ended" : admission.state,
      tokensReleasedMs: admission.tokensReleasedMs ?? nowMs,
      goneMs: admission.goneMs ?? nowMs,
    }));
}

/** Writes the admissions that changed, releases what they no longer hold, and clears clusters in which nothing of them is left. */
async function recordAdmissions(
  tx: Executor,
  job: Job,
  admissions: readonly Admission[],
  nowMs: number,
): Promise<void> {
  const earlier = new Map(job.admissions.map((admission) => [admission.number, admission]));
  const changed = admissions.filter(
    (admission) => canonicalJson(earlier.get(admission.number) ?? null) !== canonicalJson(admission),
  );
  await writeAdmissions(tx, job.uid, changed);
  const released = changed.filter(
    (admission) => admission.tokensReleasedMs !== null && earlier.get(admission.number)?.tokensReleasedMs === null,
  );
  await releaseAdmissions(tx, job.uid, numbersOf(released), nowMs);
  for (const admission of changed) {
    if (admission.tokensReleasedMs === null && hasFewerMembers(admission, earlier.get(admission.number))) {
      await shrinkTokens(tx, { jobUid: job.uid, spec: job.spec, admission, nowMs });
    }
  }
  const gone = changed.filter((admission) => admission.goneMs !== null);
  if (gone.length > 0) await tx.query(CLEAR_CLUSTERS, [job.uid, numbersOf(gone)]);
}

function hasFewerMembers(after: Admission, before: Admission | undefined): boolean {
  return before !== undefined && memberCount(after.members) < memberCount(before.members);
}

const CLEAR_CLUSTERS = "delete from admission_clusters where job_uid = $1 and admission = any($2::int[])";

function numbersOf(admissions: readonly Admission[]): readonly number[] {
  return admissions.map((admission) => admission.number);
}

/** The record goes; its events stay. Whatever it still held is given back, so that no token outlives its job. */
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
  const event = {
    type: "Normal" as const,
    reason: `${job.spec.kind}Deleted`,
    message: `${job.spec.kind} ${job.name} is deleted.`,
  };
  await appendChanges(tx, [{ before: job, after: null, events: [event] }], nowMs);
}
