import { bucketOf } from "../../../core/job/bucket.ts";
import type { Job } from "../../../core/job/job.ts";
import type { SentJob } from "../../../core/job/sent.ts";
import { bareSpec } from "../../../core/job/spec.ts";
import type { Admission } from "../../../core/job/status.ts";
import { type Executor, json, storable } from "../db/db.ts";
import { clusterOf, statusDocument } from "./job-row.ts";

/** Inserts a job's row, due at once. False: its name is taken. */
export async function insertJob(tx: Executor, job: Job, sent: SentJob): Promise<boolean> {
  return (await insertJobs(tx, [{ job, sent }])).has(job.uid);
}

/** Inserts jobs in this order, due at once. Returns the uids of those whose name was free. */
export async function insertJobs(
  tx: Executor,
  jobs: readonly { readonly job: Job; readonly sent: SentJob }[],
): Promise<ReadonlySet<string>> {
  const inserted = await tx.query<{ uid: string }>(INSERT_JOBS, [
    jobs.map(({ job }) => job.uid),
    jobs.map(({ job }) => job.namespace),
    jobs.map(({ job }) => job.name),
    jobs.map(({ job }) => job.project),
    jobs.map(({ job }) => job.spec.kind),
    jobs.map(({ job }) => job.spec.runPolicy.schedulingPolicy.queue),
    jobs.map(({ job }) => job.spec.priority),
    jobs.map(({ job }) => job.status.phase),
    jobs.map(({ job }) => job.status.completionTimeMs),
    jobs.map(({ job }) => clusterOf(job)),
    jobs.map(({ job }) => json(job.labels)),
    jobs.map(({ job }) => json(job.annotations)),
    jobs.map(({ job }) => storable(job.createdBy)),
    jobs.map(({ job }) => job.createTimeMs),
    jobs.map(({ job }) => job.deleteTimeMs),
    jobs.map(({ job }) => (job.cancel === null ? null : json(job.cancel))),
    jobs.map(({ job }) => job.version),
    jobs.map(({ job }) => bucketOf(job.uid)),
    jobs.map(({ sent }) => json(sent)),
    jobs.map(({ job }) => json(job.spec)),
    jobs.map(({ job }) => json(bareSpec(job.spec))),
    jobs.map(({ job }) => json(statusDocument(job.status))),
    jobs.map(({ job }) => job.traceParent ?? null),
    jobs.map(({ job }) => storable(job.spec.runPolicy.cacheKey ?? "") || null),
  ]);
  return new Set(inserted.map((row) => row.uid));
}

const INSERT_JOBS = `
insert into jobs (
  uid, namespace, name, project, kind, queue, priority, phase, completion_ms, cluster, labels, annotations, created_by,
  create_ms, delete_ms, cancel, version, bucket, recheck_at_ms, sent, spec, outline, spec_bytes, status, trace_parent,
  cache_key
)
select uid, namespace, name, project, kind, queue, priority, phase, completion_ms, cluster, labels::jsonb,
       annotations::json, created_by, create_ms, delete_ms, cancel::json, version, bucket, create_ms, sent::json,
       spec::json, outline::json, octet_length(spec), status::json, trace_parent, cache_key
  from unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int[], $8::text[], $9::bigint[],
    $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::bigint[], $16::text[], $17::bigint[],
    $18::smallint[], $19::text[], $20::text[], $21::text[], $22::text[], $23::text[], $24::text[]
  ) as j (
    uid, namespace, name, project, kind, queue, priority, phase, completion_ms, cluster, labels, annotations,
    created_by, create_ms, delete_ms, cancel, version, bucket, sent, spec, outline, status, trace_parent, cache_key
  )
on conflict (namespace, name) do nothing
returning uid`;

/** Writes the columns of a job that can change. The transaction has locked its row. `recheckAtMs` omitted: stays. */
export async function updateJob(tx: Executor, job: Job, recheckAtMs?: number | null): Promise<void> {
  await tx.query(UPDATE_JOB, [
    job.uid,
    job.version,
    job.status.phase,
    job.status.completionTimeMs,
    clusterOf(job),
    json(statusDocument(job.status)),
    job.deleteTimeMs,
    job.cancel === null ? null : json(job.cancel),
    recheckAtMs !== undefined,
    recheckAtMs ?? null,
  ]);
}

const UPDATE_JOB = `
update jobs
   set version = $2, phase = $3, completion_ms = $4, cluster = $5, status = $6::json, delete_ms = $7, cancel = $8::json,
       recheck_at_ms = case when $9 then $10 else recheck_at_ms end
 where uid = $1`;

/** Writes admissions of a job whose row the transaction holds, new ones and changed ones. */
export async function writeAdmissions(tx: Executor, jobUid: string, admissions: readonly Admission[]): Promise<void> {
  if (admissions.length === 0) return;
  const rows = [...admissions].sort((a, b) => a.number - b.number);
  await tx.query(WRITE_ADMISSIONS, [
    jobUid,
    rows.map((row) => row.number),
    rows.map((row) => row.cluster ?? ""),
    rows.map((row) => row.state),
    rows.map((row) => json(row.members)),
    rows.map((row) => json(row.flavors)),
    rows.map((row) => json(row.nodeLabels)),
    rows.map((row) => row.admitTimeMs),
    rows.map((row) => row.tokensReleasedMs),
    rows.map((row) => row.goneMs),
    rows.map((row) => row.belowMinSinceMs),
  ]);
}

const WRITE_ADMISSIONS = `
insert into admissions (
  job_uid, number, cluster, state, members, flavors, node_labels, admit_ms, tokens_released_ms, gone_ms,
  below_min_since_ms
)
select $1, number, cluster, state, members::json, flavors::json, node_labels::json, admit_ms, tokens_released_ms,
       gone_ms, below_min_since_ms
  from unnest(
    $2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[],
    $11::bigint[]
  ) as a (
    number, cluster, state, members, flavors, node_labels, admit_ms, tokens_released_ms, gone_ms, below_min_since_ms
  )
 order by number
on conflict (job_uid, number) do update
   set state = excluded.state, members = excluded.members, flavors = excluded.flavors,
       node_labels = excluded.node_labels, tokens_released_ms = excluded.tokens_released_ms, gone_ms = excluded.gone_ms,
       below_min_since_ms = excluded.below_min_since_ms`;
