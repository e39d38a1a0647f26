import { type AdmissionChanges, admissionChanges } from "../../../core/job/admission-changes.ts";
import type { BucketLease } from "../../../core/job/bucket.ts";
import { endedAttempt } from "../../../core/job/ended-attempt.ts";
import type { JobEvent } from "../../../core/job/event.ts";
import type { Job } from "../../../core/job/job.ts";
import { endsNomination } from "../../../core/job/nomination.ts";
import { deletedEvent } from "../../../core/job/request/create-and-end.ts";
import type { Decision, RecordOutcome } from "../../../core/reconcile/decision.ts";
import type { Db, Executor } from "../db/db.ts";
import { giveBack, type ShrunkAdmission } from "../ledger/give-back.ts";
import type { JobAdmission } from "../ledger/name-heirs.ts";
import { appendChanges } from "./append.ts";
import { moveRechecks, type Recheck } from "./due-jobs.ts";
import { type ChangeTime, updateJobs, writeAdmissions } from "./write-job.ts";

/** A worker's decision about a job as it was read, and the lease of the job's bucket. */
export type DecidedStep = { readonly job: Job; readonly decision: Decision; readonly lease: BucketLease };

/**
 * Records the decisions of steps in one transaction, each under its own guards. Records nothing of a step whose job has
 * moved on (`stale`), or whose bucket another worker holds (`leaseLost`). A decision without a record only moves the
 * time to look again. The number of statements does not depend on the number of steps. Tokens come last, since grants
 * wait for their pools. Returns the outcomes in the order of the steps.
 */
export function recordSteps(
  db: Db,
  steps: readonly DecidedStep[],
  { nowMs, kinds }: ChangeTime,
): Promise<readonly RecordOutcome[]> {
  return db.tx(async (tx) => {
    const outcomes = await guard(tx, steps);
    const open = steps.filter((_step, at) => outcomes[at] === "recorded");
    const forgotten = open.filter(({ decision }) => decision.forget).map(({ job }) => job);
    const changes = open.flatMap((step) => changeOf(step, nowMs) ?? []);
    const moved = open.flatMap((step) => recheckOf(step) ?? []);
    if (changes.length > 0) await updateJobs(tx, changes, kinds);
    if (moved.length > 0) await moveRechecks(tx, moved);
    await writeAdmissions(
      tx,
      changes.flatMap(({ after, admissions }) =>
        admissions.changed.map((admission) => ({ jobUid: after.uid, admission })),
      ),
    );
    const left = await deleteAdmissions(tx, forgotten);
    await clearClusters(tx, changes);
    await deleteJobs(tx, forgotten);
    await appendChanges(
      tx,
      [...changes, ...forgotten.map((job) => ({ before: job, after: null, events: [deletedEvent(job)] }))],
      nowMs,
    );
    await giveBack(
      tx,
      {
        released: [...changes.flatMap(releasedBy), ...left],
        shrunk: changes.flatMap(shrunkBy),
        withdrawn: [...changes.flatMap(noMoreNominated), ...forgotten.map(({ uid }) => uid)],
      },
      nowMs,
    );
    return outcomes;
  });
}

/** A change of a job and of its admissions. */
type StepChange = {
  readonly before: Job;
  readonly after: Job;
  readonly recheckAtMs: number | null;
  readonly events: readonly JobEvent[];
  readonly admissions: AdmissionChanges;
};

/** Null: the decision changes nothing of the record, or removes it. */
function changeOf({ job, decision }: DecidedStep, nowMs: number): StepChange | null {
  const { record, forget, recheckAtMs } = decision;
  if (record === null || forget) return null;
  const { status, admissions, deleteTimeMs, events } = record;
  const after: Job = { ...job, status, admissions, deleteTimeMs, version: job.version + 1 };
  return { before: job, after, recheckAtMs, events, admissions: admissionChanges(job.admissions, admissions, nowMs) };
}

/**
 * Locks each job's row at its version under its bucket's epoch, until the transaction ends. The key-share lock on the
 * bucket's lease allows its holder to renew it. A take-over changes the epoch, which is part of a key, so it waits
 * until the record is done; a record that waited for a take-over finds the epoch gone. A second step of one job is
 * stale: the first has changed the job.
 */
async function guard(tx: Executor, steps: readonly DecidedStep[]): Promise<readonly RecordOutcome[]> {
  const found = await tx.query<{ recorded: boolean; leased: boolean }>(GUARD, [
    steps.map(({ job }) => job.uid),
    steps.map(({ job }) => job.version),
    steps.map(({ lease }) => lease.bucket),
    steps.map(({ lease }) => lease.epoch),
  ]);
  const taken = new Set<string>();
  return steps.map(({ job }, at) => {
    const { recorded = false, leased = false } = found[at] ?? {};
    if (!leased) return "leaseLost";
    if (!recorded || taken.has(job.uid)) return "stale";
    taken.add(job.uid);
    return "recorded";
  });
}

const GUARD = `
with step as (
  select * from unnest($1::uuid[], $2::bigint[], $3::int[], $4::bigint[]) with ordinality
    as s (uid, version, bucket, epoch, place)
), lease as (
  select bucket, epoch from bucket_leases
   where (bucket, epoch) in (select bucket, epoch from step)
   order by bucket
     for key share
), job as (
  select j.uid, j.version, j.bucket
    from jobs j
   where (j.uid, j.version, j.bucket) in (
           select s.uid, s.version, s.bucket from step s
            where (s.bucket, s.epoch) in (select bucket, epoch from lease)
         )
   order by j.uid
     for update
)
select exists (select from job where (job.uid, job.version, job.bucket) = (s.uid, s.version, s.bucket)) as recorded,
       exists (select from lease where (lease.bucket, lease.epoch) = (s.bucket, s.epoch)) as leased
  from step s
 order by s.place`;

/** Null: the decision changes the record, or removes it. */
function recheckOf({ job, decision, lease }: DecidedStep): Recheck | null {
  const { record, forget, recheckAtMs } = decision;
  return record === null && !forget ? { jobUid: job.uid, atMs: recheckAtMs, lease, version: job.version } : null;
}

/** The admissions and attempts whose tokens a change releases. */
function releasedBy({ before, after, admissions }: StepChange): readonly JobAdmission[] {
  const ended = endedAttempt(before.status.plugin, after.status.plugin);
  const numbers = ended === null ? admissions.released : [...admissions.released, ended];
  return numbers.map((admission) => ({ jobUid: after.uid, admission }));
}

function shrunkBy({ before, after, admissions }: StepChange): readonly ShrunkAdmission[] {
  return admissions.shrunk.map((admission) => ({ jobUid: after.uid, spec: before.spec, admission }));
}

function noMoreNominated({ before, after }: StepChange): readonly string[] {
  return endsNomination(before, after) ? [after.uid] : [];
}

async function clearClusters(tx: Executor, changes: readonly StepChange[]): Promise<void> {
  const gone = changes.flatMap(({ after, admissions }) =>
    admissions.gone.map((admission) => ({ jobUid: after.uid, admission })),
  );
  if (gone.length === 0) return;
  await tx.query(CLEAR_CLUSTERS, [gone.map(({ jobUid }) => jobUid), gone.map(({ admission }) => admission)]);
}

const CLEAR_CLUSTERS = `
delete from admission_clusters c using unnest($1::uuid[], $2::int[]) as g (job_uid, admission)
 where c.job_uid = g.job_uid and c.admission = g.admission`;

/** Removes the admissions of these jobs, and returns them: their tokens are released, and none outlives its job. */
async function deleteAdmissions(tx: Executor, jobs: readonly Job[]): Promise<readonly JobAdmission[]> {
  return jobs.length === 0 ? [] : tx.query<JobAdmission>(DELETE_ADMISSIONS, [jobs.map(({ uid }) => uid)]);
}

const DELETE_ADMISSIONS = `
delete from admissions where job_uid = any($1::uuid[])
returning job_uid as "jobUid", number as admission`;

/** Removes the jobs' records and keeps their events. */
async function deleteJobs(tx: Executor, jobs: readonly Job[]): Promise<void> {
  if (jobs.length > 0) await tx.query("delete from jobs where uid = any($1::uuid[])", [jobs.map(({ uid }) => uid)]);
}
