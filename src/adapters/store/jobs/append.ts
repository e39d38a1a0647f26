import type { JobEvent } from "../../../core/job/event.ts";
import type { Job } from "../../../core/job/job.ts";
import { changingOf } from "../../../core/job/request/filter.ts";
import { foreignText } from "../../../runtime/foreign-text.ts";
import { type Executor, json, jsonTexts } from "../db/db.ts";
import { prepared } from "../db/prepared.ts";
import { documentOf, settled } from "./job-row.ts";

/** One change of one job: its record before and after, and the events for people. */
export type JobChange = {
  /** Null: the job is new. */
  readonly before: Job | null;
  /** Null: the job's record is removed. */
  readonly after: Job | null;
  readonly events: readonly JobEvent[];
};

/**
 * Appends changes and their events to the log. Call it in the transaction of the change, after the statement that
 * locked the job's row. Otherwise a job's entries may get ids in another order than its versions.
 */
export async function appendChanges(tx: Executor, changes: readonly JobChange[], nowMs: number): Promise<void> {
  if (changes.length === 0) return;
  const rows = changes.map(changeRow);
  const appended = tx.query(APPEND_CHANGES, [
    rows.map((row) => row.uid),
    rows.map((row) => row.version),
    rows.map((row) => row.change),
    jsonTexts(rows.map((row) => row.job)),
    rows.map((row) => row.previousPhase),
    rows.map((row) => row.previousCluster),
    nowMs,
    rows.map((row) => row.previousLabels),
  ]);
  const events = changes.flatMap((change) => {
    const job = shownJob(change);
    return change.events.map((event) => ({ job, event }));
  });
  await Promise.all([appended, appendEvents(tx, events, nowMs)]);
}

const APPEND_CHANGES = prepared(`
insert into job_changes (job_uid, version, change, job, previous_phase, previous_cluster, previous_labels, at_ms)
select job_uid, version, change, job::json, previous_phase, previous_cluster, previous_labels::jsonb, $7
  from unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $8::text[])
    as c (job_uid, version, change, job, previous_phase, previous_cluster, previous_labels)`);

/** Appends events for people, without a change of the job. */
export async function appendEvents(
  executor: Executor,
  events: readonly { readonly job: Job; readonly event: JobEvent }[],
  nowMs: number,
): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map(({ job, event }) => ({
    job_uid: job.uid,
    namespace: job.namespace,
    name: job.name,
    version: job.version,
    type: event.type,
    reason: foreignText(event.reason),
    message: foreignText(event.message),
  }));
  await executor.query(APPEND_EVENTS, [json(rows), nowMs]);
}

const APPEND_EVENTS = prepared(`
insert into job_events (job_uid, namespace, name, version, type, reason, message, at_ms)
select job_uid, namespace, name, version, type, reason, message, $2
  from json_to_recordset($1::json)
    as e (job_uid uuid, namespace text, name text, version bigint, type text, reason text, message text)`);

/** The job as the log's entry shows it: after the change, or, if removed, as it was with the next version. */
function shownJob(change: JobChange): Job {
  if (change.after !== null) return settled(change.after);
  if (change.before === null) throw new Error("a change for the log has neither a job before nor a job after it");
  return { ...settled(change.before), version: change.before.version + 1 };
}

function changeRow(change: JobChange) {
  const job = shownJob(change);
  const previous = change.before === null ? null : changingOf(settled(change.before));
  const relabelled = change.before !== null && change.before.labels !== job.labels;
  return {
    uid: job.uid,
    version: job.version,
    change: change.before === null ? "ADDED" : change.after === null ? "DELETED" : "MODIFIED",
    job: documentOf(job),
    previousPhase: previous?.phase ?? null,
    previousCluster: previous === null ? null : (previous.cluster ?? ""),
    previousLabels: relabelled ? json(change.before?.labels ?? {}) : null,
  };
}
