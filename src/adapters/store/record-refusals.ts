import type { Job } from "../../core/job/job.ts";
import type { Refusal } from "../../core/plan/plan-types.ts";
import { appendChanges } from "./append.ts";
import { type Db, type Executor, json } from "./db.ts";
import { JOB_COLUMNS, type JobRow, jobOf, statusDocument } from "./job-row.ts";
import { holdsPlannerLease } from "./planner-lease.ts";

/** So many refusals are recorded in one transaction, so that none holds its rows for long. */
const BATCH = 500;

/**
 * Keeps what the planner found in the way of each waiting job. A job's own record, and so its version, changes only where the dominant
 * reason did; one that has moved on since the snapshot is left alone, and all are if another planner has the lease.
 */
export async function recordRefusals(
  db: Db,
  refusals: readonly Refusal[],
  plannerEpoch: number,
  nowMs: number,
): Promise<void> {
  const ordered = [...refusals].sort((a, b) => (a.jobUid < b.jobUid ? -1 : 1));
  for (let from = 0; from < ordered.length; from += BATCH) {
    const batch = ordered.slice(from, from + BATCH);
    await db.tx(async (tx) => {
      if (await holdsPlannerLease(tx, plannerEpoch)) await recordBatch(tx, batch, nowMs);
    });
  }
}

async function recordBatch(tx: Executor, refusals: readonly Refusal[], nowMs: number): Promise<void> {
  const keys = json(refusals.map(({ jobUid, jobVersion }) => ({ uid: jobUid, version: jobVersion })));
  const waiting = await tx.query<Pick<JobRow, "uid" | "status">>(LOCK_WAITING, [keys]);
  const reasons = new Map(waiting.map((row) => [row.uid, row.status.waiting?.reason ?? null]));
  const current = refusals.filter((refusal) => reasons.has(refusal.jobUid));
  const changed = current.filter((refusal) => reasons.get(refusal.jobUid) !== refusal.reason);
  if (changed.length > 0) await changeReasons(tx, changed, nowMs);
  if (current.length === 0) return;
  await tx.query(KEEP_REFUSALS, [
    current.map((refusal) => refusal.jobUid),
    current.map((refusal) => json(refusal)),
    nowMs,
  ]);
}

const LOCK_WAITING = `
select j.uid, j.status
  from jobs j join json_to_recordset($1::json) as r (uid uuid, version bigint) on r.uid = j.uid and r.version = j.version
 where j.phase = 'WAITING' and j.cancel is null and j.delete_ms is null
 order by j.uid
   for no key update of j`;

async function changeReasons(tx: Executor, refusals: readonly Refusal[], nowMs: number): Promise<void> {
  const rows = await tx.query<JobRow>(`select ${JOB_COLUMNS} from jobs j where j.uid = any($1::uuid[])`, [
    refusals.map((refusal) => refusal.jobUid),
  ]);
  const jobs = new Map(rows.map((row) => [row.uid, jobOf(row)]));
  const changes = refusals.flatMap((refusal) => {
    const before = jobs.get(refusal.jobUid);
    return before === undefined ? [] : [change(before, refusal, nowMs)];
  });
  await tx.query(CHANGE_REASONS, [
    changes.map(({ after }) => after.uid),
    changes.map(({ after }) => json(statusDocument(after.status))),
  ]);
  await appendChanges(tx, changes, nowMs);
}

function change(before: Job, refusal: Refusal, nowMs: number) {
  const waiting = { reason: refusal.reason, message: refusal.message, sinceMs: nowMs };
  const after: Job = { ...before, status: { ...before.status, waiting }, version: before.version + 1 };
  const event = { type: "Normal" as const, reason: refusal.reason, message: refusal.message };
  return { before, after, events: [event] };
}

const CHANGE_REASONS = `
update jobs j set version = j.version + 1, status = c.status::json
  from unnest($1::uuid[], $2::text[]) as c (uid, status)
 where j.uid = c.uid`;

const KEEP_REFUSALS = `
insert into refusals as r (job_uid, refusal, at_ms)
select uid, refusal::json, $3 from unnest($1::uuid[], $2::text[]) as k (uid, refusal) order by uid
on conflict (job_uid) do update set refusal = excluded.refusal, at_ms = excluded.at_ms
 where r.refusal::text <> excluded.refusal::text`;
