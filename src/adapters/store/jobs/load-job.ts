import type { Job } from "../../../core/job/job.ts";
import type { Placement } from "../../../core/job/placement/placement.ts";
import type { WholeSpec } from "../../../core/job/request/event-log.ts";
import { PAGE_BYTES_MAX } from "../../../core/job/request/list.ts";
import type { JobSpec } from "../../../core/job/spec.ts";
import type { Executor } from "../db/db.ts";
import { JOB_COLUMNS, JOB_READING, type JobRow, jobOf, LIVE_PLACEMENT, STEP_COLUMNS } from "./job-row.ts";

/** A job with its bucket. */
export type LoadedJob = { readonly job: Job; readonly bucket: number };

/** The same for a step, with the planned nodes of its live admission. Null: none are planned. */
export type StepJob = LoadedJob & { readonly placement: Placement | null };

/** A job with its bucket. Null: its record is gone. */
export async function loadJob(executor: Executor, uid: string): Promise<LoadedJob | null> {
  const [loaded = null] = await loadedJobs(executor, [uid]);
  return loaded;
}

/** The same, without templates. */
export async function loadBareJob(executor: Executor, uid: string): Promise<LoadedJob | null> {
  const { columns, jobOf: outlineOf } = JOB_READING.BASIC;
  const [row] = await executor.query<JobRow>(`select ${columns} from jobs j where j.uid = $1`, [uid]);
  return row === undefined ? null : { job: outlineOf(row), bucket: row.bucket };
}

/**
 * Several jobs with their buckets, for steps, in the order of the uids. A job that is set aside has no templates. Null:
 * the record is gone.
 */
export async function jobsForSteps(executor: Executor, uids: readonly string[]): Promise<readonly (StepJob | null)[]> {
  const rows = await executor.query<JobRow & Pick<StepJob, "placement">>(JOBS_FOR_STEPS, [uids]);
  const found = new Map(
    rows.map((row) => [row.uid, { job: stepJobOf(row), bucket: row.bucket, placement: row.placement }]),
  );
  return uids.map((uid) => found.get(uid) ?? null);
}

const JOBS_FOR_STEPS = `
select ${STEP_COLUMNS}, ${LIVE_PLACEMENT}
  from jobs j where j.uid = any($1::uuid[])`;

function stepJobOf(row: JobRow): Job {
  return row.status.setAside === undefined ? jobOf(row) : JOB_READING.BASIC.jobOf(row);
}

/** Several jobs with their buckets, in the order of the uids. Null: the record is gone. */
export async function loadedJobs(executor: Executor, uids: readonly string[]): Promise<readonly (LoadedJob | null)[]> {
  const rows = await executor.query<JobRow>(`select ${JOB_COLUMNS} from jobs j where j.uid = any($1::uuid[])`, [uids]);
  const found = new Map(rows.map((row) => [row.uid, { job: jobOf(row), bucket: row.bucket }]));
  return uids.map((uid) => found.get(uid) ?? null);
}

/** The jobs of these uids that still exist. */
export async function loadJobs(executor: Executor, uids: readonly string[]): Promise<ReadonlyMap<string, Job>> {
  if (uids.length === 0) return new Map();
  const loaded = await loadedJobs(executor, uids);
  return new Map(loaded.flatMap((one) => (one === null ? [] : [[one.job.uid, one.job]])));
}

/**
 * The specs with templates of the first of these jobs: as many as a page holds, and at least one. Null: the record of
 * the job is gone.
 */
export async function wholeSpecs(
  executor: Executor,
  uids: readonly string[],
): Promise<ReadonlyMap<string, WholeSpec | null>> {
  const rows = await executor.query<{ uid: string; spec: JobSpec | null; bytes: number }>(WHOLE_SPECS, [uids]);
  return new Map(rows.map(({ uid, spec, bytes }) => [uid, spec === null ? null : { spec, bytes }]));
}

const WHOLE_SPECS = `
with asked as (
  select uid, place, coalesce(j.spec_bytes, octet_length(j.spec::text), 0) as bytes
    from unnest($1::uuid[]) with ordinality as a (uid, place) left join jobs j using (uid)
), measured as (
  select uid, place, bytes, sum(bytes) over (order by place) as total from asked
)
select uid, bytes, j.spec
  from measured left join jobs j using (uid)
 where place = 1 or total <= ${PAGE_BYTES_MAX}
 order by place`;

/** Locks the row of the job of that name until the transaction ends, and reads the job. Null: there is none. */
export async function lockJobByName(
  tx: Executor,
  which: { readonly namespace: string; readonly name: string },
): Promise<Job | null> {
  const locked = await tx.query<{ uid: string }>(
    "select uid from jobs where namespace = $1 and name = $2 for no key update",
    [which.namespace, which.name],
  );
  const [row] = locked;
  // A second statement: the one that waited for the lock would read the admissions as they were before it waited.
  return row === undefined ? null : ((await loadJob(tx, row.uid))?.job ?? null);
}
