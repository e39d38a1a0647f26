import { bucketOf } from "../../../core/job/bucket.ts";
import { allNodeLabels } from "../../../core/job/flavor-labels.ts";
import type { Job } from "../../../core/job/job.ts";
import type { Placement } from "../../../core/job/placement/placement.ts";
import { bareSpec } from "../../../core/job/spec.ts";
import type { Admission } from "../../../core/job/status.ts";
import type { Registry } from "../../../core/kinds/registry.ts";
import type { AskedJob } from "../../../core/plan/model/ask.ts";
import { type Executor, jsonTexts, storable } from "../db/db.ts";
import { prepared } from "../db/prepared.ts";
import { askParameters, changedGangColumns, gangColumns, writeAsks } from "./gang-columns.ts";
import { countedQueues, type JobLimits } from "./job-limits.ts";
import { admissionColumns, clusterOf, statusDocument } from "./job-row.ts";

/** A job that has no row yet. */
type InsertedJob = Pick<AskedJob, "job" | "sent" | "asked">;

/**
 * Inserts jobs in this order, due at once. Returns the uids of those whose name was free, and whose namespace and queue
 * exist. Others cannot delete these namespaces and queues until the transaction ends. Leaves out jobs of a queue that
 * limits its waiting jobs and is not in `rooms`, where `lockJobLimits` has counted them.
 */
export async function insertJobs(
  tx: Executor,
  { jobs, rooms }: { readonly jobs: readonly InsertedJob[]; readonly rooms: JobLimits },
  kinds: Registry,
): Promise<ReadonlySet<string>> {
  const gangs = jobs.map(({ job, asked }) => gangColumns(job, kinds, asked));
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
    jsonTexts(jobs.map(({ job }) => job.labels)),
    jsonTexts(jobs.map(({ job }) => job.annotations)),
    jobs.map(({ job }) => storable(job.createdBy)),
    jobs.map(({ job }) => job.createTimeMs),
    jobs.map(({ job }) => job.deleteTimeMs),
    jsonTexts(jobs.map(({ job }) => job.cancel)),
    jobs.map(({ job }) => job.version),
    jobs.map(({ job }) => bucketOf(job.uid)),
    jsonTexts(jobs.map(({ sent }) => sent)),
    jsonTexts(jobs.map(({ job }) => job.spec)),
    jsonTexts(jobs.map(({ job }) => bareSpec(job.spec))),
    jsonTexts(jobs.map(({ job }) => statusDocument(job.status))),
    jobs.map(({ job }) => job.traceParent ?? null),
    jobs.map(({ job }) => storable(job.spec.runPolicy.cacheKey ?? "") || null),
    gangs.map(({ asked }) => asked.hash),
    gangs.map(({ documented }) => documented),
    ...askParameters(gangs.map(({ asked }) => asked)),
    countedQueues(rooms),
  ]);
  return new Set(inserted.map((row) => row.uid));
}

const INSERT_JOBS = prepared(`
with asked as (${writeAsks("$27", "$28")}
), kept_namespaces as (
  select name from namespaces where name = any($2::text[]) order by name for key share
), kept_queues as (
  select name from queues
   where name = any($6::text[]) and (max_waiting_jobs is null or name = any($29::text[]))
   order by name for key share
)
insert into jobs (
  uid, namespace, name, project, kind, queue, priority, phase, completion_ms, cluster, labels, annotations, created_by,
  create_ms, delete_ms, cancel, version, bucket, recheck_at_ms, sent, spec, outline, spec_bytes, status, trace_parent,
  cache_key, ask_hash, gang, generation, gang_version
)
select uid, namespace, name, project, kind, queue, priority, phase, completion_ms, cluster, labels::jsonb,
       annotations::json, created_by, create_ms, delete_ms, cancel::json, version, bucket, create_ms, sent::json,
       spec::json, outline::json, octet_length(spec), status::json, trace_parent, cache_key, ask_hash,
       gang::json, 1, version
  from unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int[], $8::text[], $9::bigint[],
    $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::bigint[], $16::text[], $17::bigint[],
    $18::smallint[], $19::text[], $20::text[], $21::text[], $22::text[], $23::text[], $24::text[],
    $25::text[], $26::text[]
  ) with ordinality as j (
    uid, namespace, name, project, kind, queue, priority, phase, completion_ms, cluster, labels, annotations,
    created_by, create_ms, delete_ms, cancel, version, bucket, sent, spec, outline, status, trace_parent, cache_key,
    ask_hash, gang, place
  )
 where namespace in (select name from kept_namespaces) and queue in (select name from kept_queues)
 order by place
on conflict (namespace, name) do nothing
returning uid`);

/** When a job is changed, and the kinds that its process serves. */
export type ChangeTime = { readonly nowMs: number; readonly kinds: Registry };

/** A job before and after a change. */
export type JobUpdate = {
  readonly before: Job;
  readonly after: Job;
  /** Omitted: stays. */
  readonly recheckAtMs?: number | null;
};

/** Writes a change of a job whose row the transaction has locked. */
export async function updateJob(tx: Executor, update: JobUpdate, kinds: Registry): Promise<void> {
  await updateJobs(tx, [update], kinds);
}

/**
 * Writes the columns that can change of these jobs, in one statement. Every change of a job goes through it, so that
 * the gang's columns follow. A change that keeps the job's spec needs no templates. Leaves out jobs that have another
 * version than before the change. Returns the uids of the others. Locks rows in the order of their uids, so that two
 * calls never wait for each other in a circle.
 */
export async function updateJobs(
  tx: Executor,
  updates: readonly JobUpdate[],
  kinds: Registry,
): Promise<ReadonlySet<string>> {
  const gangs = updates.map(({ before, after }) => changedGangColumns(before, after, kinds));
  const updated = await tx.query<{ uid: string }>(UPDATE_JOBS, [
    updates.map(({ after }) => after.uid),
    updates.map(({ before }) => before.version),
    updates.map(({ after }) => after.version),
    updates.map(({ after }) => after.status.phase),
    updates.map(({ after }) => after.status.completionTimeMs),
    updates.map(({ after }) => clusterOf(after)),
    jsonTexts(updates.map(({ after }) => statusDocument(after.status))),
    updates.map(({ after }) => after.deleteTimeMs),
    jsonTexts(updates.map(({ after }) => after.cancel)),
    updates.map(({ recheckAtMs }) => recheckAtMs !== undefined),
    updates.map(({ recheckAtMs }) => recheckAtMs ?? null),
    gangs.map(({ documented }) => documented),
    gangs.map(({ raises }) => raises),
    gangs.map(({ asked }) => asked?.hash ?? null),
    updates.map(({ after }) => after.status.setAside?.sinceMs ?? null),
    ...askParameters(gangs.map(({ asked }) => asked)),
  ]);
  return new Set(updated.map((row) => row.uid));
}

/** Columns of a gang that a program of the version before has left behind stay so, unless the ask is new. */
const UPDATE_JOBS = `
with asked as (${writeAsks("$16", "$17")}
), changed as (
  select j.uid as locked, c.*
    from jobs j join unnest(
      $1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::bigint[],
      $9::text[], $10::boolean[], $11::bigint[], $12::text[], $13::boolean[], $14::text[], $15::bigint[]
    ) as c (
      uid, version_before, version, phase, completion_ms, cluster, status, delete_ms, cancel, rechecks, recheck_at_ms,
      gang, raises, ask_hash, set_aside_ms
    ) on c.uid = j.uid and c.version_before = j.version
   where j.uid = any($1::uuid[])
   order by j.uid
     for no key update of j
)
update jobs j
   set version = c.version, phase = c.phase, completion_ms = c.completion_ms, cluster = c.cluster,
       status = c.status::json, delete_ms = c.delete_ms, cancel = c.cancel::json,
       recheck_at_ms = case when c.rechecks then c.recheck_at_ms else j.recheck_at_ms end,
       gang = c.gang::json, generation = j.generation + c.raises::int,
       ask_hash = coalesce(c.ask_hash, j.ask_hash), set_aside_ms = c.set_aside_ms,
       gang_version =
         case when c.ask_hash is not null or j.gang_version = j.version then c.version else j.gang_version end
  from changed c
 where j.uid = c.locked
returning j.uid`;

/** An admission to write. `placement` null or omitted: the planned nodes that are recorded stay. */
export type WrittenAdmission = {
  readonly jobUid: string;
  readonly admission: Admission;
  readonly placement?: Placement | null;
};

/** Writes admissions of jobs whose rows the transaction holds, new ones and changed ones. */
export async function writeAdmissions(tx: Executor, rows: readonly WrittenAdmission[]): Promise<void> {
  if (rows.length === 0) return;
  const written = rows.map(({ admission }) => admissionColumns(admission));
  const admissions = written.map(({ columns }) => columns);
  await tx.query(WRITE_ADMISSIONS, [
    rows.map((row) => row.jobUid),
    admissions.map((row) => row.number),
    admissions.map((row) => row.cluster ?? ""),
    admissions.map((row) => row.state),
    jsonTexts(admissions.map((row) => row.members)),
    jsonTexts(admissions.map((row) => row.flavors)),
    jsonTexts(admissions.map((row) => allNodeLabels(row.flavorLabels))),
    admissions.map((row) => row.admitTimeMs),
    admissions.map((row) => row.tokensReleasedMs),
    admissions.map((row) => row.goneMs),
    admissions.map((row) => row.belowMinSinceMs),
    admissions.map((row) => row.simulated),
    jsonTexts(admissions.map((row) => row.flavorLabels)),
    jsonTexts(written.map(({ details }) => details)),
    jsonTexts(rows.map(({ placement = null }) => placement)),
  ]);
}

const WRITE_ADMISSIONS = `
insert into admissions (
  job_uid, number, cluster, state, members, flavors, node_labels, admit_ms, tokens_released_ms, gone_ms,
  below_min_since_ms, simulated, flavor_labels, details, placement
)
select job_uid, number, cluster, state, members::json, flavors::json, node_labels::json, admit_ms, tokens_released_ms,
       gone_ms, below_min_since_ms, simulated, flavor_labels::json, details::json, placement::json
  from unnest(
    $1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[],
    $10::bigint[], $11::bigint[], $12::boolean[], $13::text[], $14::text[], $15::text[]
  ) as a (
    job_uid, number, cluster, state, members, flavors, node_labels, admit_ms, tokens_released_ms, gone_ms,
    below_min_since_ms, simulated, flavor_labels, details, placement
  )
 order by job_uid, number
on conflict (job_uid, number) do update
   set state = excluded.state, members = excluded.members, flavors = excluded.flavors,
       node_labels = excluded.node_labels, flavor_labels = excluded.flavor_labels,
       tokens_released_ms = excluded.tokens_released_ms, gone_ms = excluded.gone_ms,
       below_min_since_ms = excluded.below_min_since_ms, details = excluded.details,
       placement = coalesce(excluded.placement, admissions.placement)`;
