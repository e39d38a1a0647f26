import { bucketOf } from "../../core/job/bucket.ts";
import type { Job } from "../../core/job/job.ts";
import type { SentJob } from "../../core/job/sent.ts";
import type { Admission } from "../../core/job/status.ts";
import { type Executor, json, storable } from "./db.ts";
import { clusterOf, statusDocument } from "./job-row.ts";

/** Inserts a job's row, to be looked at once; false where its name is taken. */
export async function insertJob(tx: Executor, job: Job, sent: SentJob): Promise<boolean> {
  const rows = await tx.query(INSERT_JOB, [
    job.uid,
    job.namespace,
    job.name,
    job.project,
    job.spec.kind,
    job.spec.runPolicy.schedulingPolicy.queue,
    job.spec.priority,
    job.status.phase,
    job.status.completionTimeMs,
    clusterOf(job),
    json(job.labels),
    json(job.annotations),
    storable(job.createdBy),
    job.createTimeMs,
    job.deleteTimeMs,
    job.cancel === null ? null : json(job.cancel),
    job.version,
    bucketOf(job.uid),
    json(sent),
    json(job.spec),
    json(statusDocument(job.status)),
  ]);
  return rows.length === 1;
}

const INSERT_JOB = `
insert into jobs (
  uid, namespace, name, project, kind, queue, priority, phase, completion_ms, cluster, labels, annotations, created_by,
  create_ms, delete_ms, cancel, version, bucket, recheck_at_ms, sent, spec, status
) values (
  $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::jsonb, $12::json, $13, $14, $15, $16::json, $17, $18, $14, $19::json, $20::json, $21::json
)
on conflict (namespace, name) do nothing
returning uid`;

/** Writes what can change of a job whose row the transaction holds. `recheckAtMs` undefined: as it was. */
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
    rows.map((row) => row.cluster),
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
  job_uid, number, cluster, state, members, flavors, node_labels, admit_ms, tokens_released_ms, gone_ms, below_min_since_ms
)
select $1, number, cluster, state, members::json, flavors::json, node_labels::json, admit_ms, tokens_released_ms, gone_ms,
       below_min_since_ms
  from unnest(
    $2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[]
  ) as a (number, cluster, state, members, flavors, node_labels, admit_ms, tokens_released_ms, gone_ms, below_min_since_ms)
 order by number
on conflict (job_uid, number) do update
   set state = excluded.state, members = excluded.members, flavors = excluded.flavors, node_labels = excluded.node_labels,
       tokens_released_ms = excluded.tokens_released_ms, gone_ms = excluded.gone_ms,
       below_min_since_ms = excluded.below_min_since_ms`;
