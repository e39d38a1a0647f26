import { applyRefusal } from "../../../core/plan/apply-plan.ts";
import type { Refusal } from "../../../core/plan/plan-types.ts";
import { compareText } from "../../../runtime/compare-text.ts";
import { type Db, type Executor, json } from "../db/db.ts";
import { holdsLease, PLANNER_LEASE } from "../fleet/leases.ts";
import { appendChanges } from "../jobs/append.ts";
import { JOB_READING, type JobRow } from "../jobs/job-row.ts";
import { type ChangeTime, updateJobs } from "../jobs/write-job.ts";

/** How many refusals one transaction records. It is bounded so that no transaction locks rows for long. */
const BATCH = 500;

/**
 * Keeps the planner's refusal of each waiting job. A job's own record, and so its version, changes only if the dominant
 * reason did. Skips jobs that have moved on since the snapshot, and does nothing if another planner has the lease.
 */
export async function recordRefusals(
  db: Db,
  refusals: readonly Refusal[],
  plannerEpoch: number,
  at: ChangeTime,
): Promise<void> {
  const ordered = [...refusals].sort((a, b) => compareText(a.jobUid, b.jobUid));
  for (let from = 0; from < ordered.length; from += BATCH) {
    const batch = ordered.slice(from, from + BATCH);
    await db.tx(async (tx) => {
      if (await holdsLease(tx, { name: PLANNER_LEASE, epoch: plannerEpoch })) await recordBatch(tx, batch, at);
    });
  }
}

/** Reads without locks and writes only differences: so a round without news writes nothing, however many jobs wait. */
async function recordBatch(tx: Executor, refusals: readonly Refusal[], at: ChangeTime): Promise<void> {
  const waiting = await tx.query<{ uid: string; version: number; reason: string | null }>(WAITING, [
    refusals.map((refusal) => refusal.jobUid),
    refusals.map((refusal) => refusal.generation),
  ]);
  const found = new Map(waiting.map((row) => [row.uid, row]));
  const current = refusals.filter((refusal) => found.has(refusal.jobUid));
  const changed = current.filter((refusal) => found.get(refusal.jobUid)?.reason !== refusal.reason);
  const versions = new Map(waiting.map(({ uid, version }) => [uid, version]));
  if (changed.length > 0) await changeReasons(tx, changed, { ...at, versions });
  if (current.length === 0) return;
  await tx.query(KEEP_REFUSALS, [
    current.map((refusal) => refusal.jobUid),
    current.map((refusal) => json(refusal)),
    at.nowMs,
  ]);
}

const WAITING = `
select j.uid, j.version, j.status->'waiting'->>'reason' as reason
  from jobs j
  join unnest($1::uuid[], $2::bigint[]) as r (uid, generation) on r.uid = j.uid and r.generation = j.generation
 where j.gang_version = j.version and j.phase = 'WAITING' and j.cancel is null and j.delete_ms is null`;

/** Leaves out jobs that have another version by now. */
async function changeReasons(
  tx: Executor,
  refusals: readonly Refusal[],
  { nowMs, kinds, versions }: ChangeTime & { readonly versions: ReadonlyMap<string, number> },
): Promise<void> {
  const rows = await tx.query<JobRow>(JOBS, [refusals.map((refusal) => refusal.jobUid)]);
  const jobs = new Map(rows.map((row) => [row.uid, JOB_READING.BASIC.jobOf(row)]));
  const changes = refusals.flatMap((refusal) => {
    const before = jobs.get(refusal.jobUid);
    if (before === undefined || before.version !== versions.get(refusal.jobUid)) return [];
    return [applyRefusal(before, refusal, nowMs)];
  });
  const written = await updateJobs(tx, changes, kinds);
  await appendChanges(
    tx,
    changes
      .filter(({ after }) => written.has(after.uid))
      .map(({ before, after, event }) => ({ before, after, events: [event] })),
    nowMs,
  );
}

const JOBS = `select ${JOB_READING.BASIC.columns} from jobs j where j.uid = any($1::uuid[])`;

const KEEP_REFUSALS = `
insert into refusals (job_uid, refusal, at_ms)
select k.uid, k.refusal::json, $3
  from unnest($1::uuid[], $2::text[]) as k (uid, refusal)
  join jobs j on j.uid = k.uid and j.phase = 'WAITING'
  left join refusals r on r.job_uid = k.uid
 where r.refusal is null or r.refusal::text <> k.refusal
 order by k.uid
on conflict (job_uid) do update set refusal = excluded.refusal, at_ms = excluded.at_ms`;
