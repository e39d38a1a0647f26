/** The watchdogs' notes about jobs that block workers or fill their memory, and the jobs that workers step alone. */

import { NOTES_COUNT_MS } from "../../../core/blame/judge.ts";
import type { StepNote } from "../../../core/blame/step-note.ts";
import { type Executor, storable } from "../db/db.ts";
import { FIRST_UID } from "../db/first-uid.ts";

/** A note as a watchdog writes it: the rest follows from what the worker has noted, and from whether it lives. */
export type NewStepNote = Omit<StepNote, "alone" | "ended" | "atMs"> & {
  readonly id: string;
  /** Null: now, by the clock of decisions. */
  readonly atMs: number | null;
};

/** Writes a note, and deletes those that are older than a day. */
export async function writeStepNote(executor: Executor, note: NewStepNote): Promise<void> {
  const { id, jobUid, worker, atMs, what, plugin } = note;
  await executor.query(WRITE_STEP_NOTE, [id, jobUid, storable(worker), atMs, what, plugin && storable(plugin)]);
}

const WRITE_STEP_NOTE = `
with noted as (
  select coalesce($4::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint + correction_ms) as at_ms
    from decision_clock
), old as (
  select id from step_notes where at_ms < (select at_ms from noted) - 86400000 order by id for update
), gone as (
  delete from step_notes where id in (select id from old)
)
insert into step_notes (id, job_uid, worker, at_ms, what, plugin, alone)
select $1::uuid, $2::uuid, $3::text, at_ms, $5::text, $6::text,
       exists (select from alone_steps a where a.job_uid = $2::uuid and starts_with(a.worker, $3::text || '/'))
  from noted
on conflict (id) do nothing`;

/** Withdraws a note: the step has ended after all. */
export async function withdrawStepNote(executor: Executor, id: string): Promise<void> {
  await executor.query("delete from step_notes where id = $1", [id]);
}

/** The notes about jobs of these buckets that may count. */
export function stepNotesIn(
  executor: Executor,
  buckets: readonly number[],
  nowMs: number,
): Promise<readonly StepNote[]> {
  return executor.query<StepNote>(STEP_NOTES_IN, [buckets, nowMs - NOTES_COUNT_MS]);
}

/** The names of a process' memberships begin with its own name. */
const STEP_NOTES_IN = `
select n.job_uid as "jobUid", n.worker, n.at_ms as "atMs", n.what, n.plugin, n.alone,
       not exists (select from workers w where starts_with(w.name, n.worker || '/')) as ended
  from step_notes n join jobs j on j.uid = n.job_uid
 where j.bucket = any($1::smallint[]) and n.at_ms > $2
 order by n.at_ms, n.id`;

/** The jobs of these buckets that workers step, in the order of uids: they have not ended, are due, or have objects. */
export async function steppedJobs(
  executor: Executor,
  buckets: readonly number[],
  page: { readonly after: string | null; readonly limit: number; readonly nowMs: number },
): Promise<readonly string[]> {
  const given = [buckets, page.after ?? FIRST_UID, page.limit, page.nowMs];
  const rows = await executor.query<{ uid: string }>(STEPPED_JOBS, given);
  return rows.map((row) => row.uid);
}

const STEPPED_JOBS = `
select uid from (
  select uid from jobs
   where uid > $2 and bucket = any($1::smallint[]) and recheck_at_ms is not null
     and (completion_ms is null or recheck_at_ms <= $4)
  union
  select j.uid
    from admission_clusters a join jobs j on j.uid = a.job_uid
   where a.job_uid > $2 and j.bucket = any($1::smallint[])
) stepped
 order by uid
 limit $3`;

/** Notes durably that a worker is about to step this job, alone among the jobs that may have ended workers. */
export async function noteAlone(
  executor: Executor,
  step: { readonly worker: string; readonly jobUid: string; readonly nowMs: number },
): Promise<void> {
  await executor.query(NOTE_ALONE, [storable(step.worker), step.jobUid, step.nowMs]);
}

const NOTE_ALONE = `
insert into alone_steps (worker, job_uid, at_ms) values ($1, $2, $3)
on conflict (worker) do update set job_uid = excluded.job_uid, at_ms = excluded.at_ms`;

/** Ends the time in which the jobs of these buckets of a worker are stepped one at a time. */
export async function endAlone(executor: Executor, worker: string, buckets: readonly number[]): Promise<void> {
  await executor.query(END_ALONE, [storable(worker), buckets]);
}

const END_ALONE = `
with own as (
  select bucket from bucket_leases
   where worker = $1 and bucket = any($2::smallint[]) and alone
   order by bucket
     for no key update
)
update bucket_leases set alone = false where bucket in (select bucket from own)`;

/** Forgets the steps alone of workers that have ended longer ago than notes count, and of this one. */
export async function forgetAlone(executor: Executor, worker: string, nowMs: number): Promise<void> {
  await executor.query(FORGET_ALONE, [storable(worker), nowMs - NOTES_COUNT_MS]);
}

const FORGET_ALONE = `
with old as (
  select worker from alone_steps
   where worker = $1 or at_ms < $2
   order by worker
     for update
)
delete from alone_steps where worker in (select worker from old)`;
