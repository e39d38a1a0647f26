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

/** A refusal, and the key of its cause: equal keys mean that nothing but numbers has changed. */
export type KeyedRefusal = { readonly refusal: Refusal; readonly causeKey: number };

/**
 * Keeps the planner's refusal of each waiting job, unless its cause is kept already. A job's own record, and so its
 * version, changes only if the dominant reason did. Leaves out jobs that have moved on since they were planned, and
 * returns them. Does nothing if another planner has the lease.
 */
export async function recordRefusals(
  db: Db,
  refusals: readonly KeyedRefusal[],
  plannerEpoch: number,
  at: ChangeTime,
): Promise<readonly string[]> {
  const ordered = [...refusals].sort((a, b) => compareText(a.refusal.jobUid, b.refusal.jobUid));
  const left: string[] = [];
  for (let from = 0; from < ordered.length; from += BATCH) {
    const batch = ordered.slice(from, from + BATCH);
    const movedOn = await db.tx(async (tx) => {
      const leads = await holdsLease(tx, { name: PLANNER_LEASE, epoch: plannerEpoch });
      return leads ? await recordBatch(tx, batch, at) : [];
    });
    left.push(...movedOn);
  }
  return left;
}

/** Reads without locks and writes only differences: so a batch without news writes nothing. */
async function recordBatch(tx: Executor, batch: readonly KeyedRefusal[], at: ChangeTime): Promise<readonly string[]> {
  const waiting = await tx.query<{ uid: string; version: number; reason: string | null }>(WAITING, [
    batch.map(({ refusal }) => refusal.jobUid),
    batch.map(({ refusal }) => refusal.generation),
  ]);
  const found = new Map(waiting.map((row) => [row.uid, row]));
  const current = batch.filter(({ refusal }) => found.has(refusal.jobUid));
  const changed = current
    .map(({ refusal }) => refusal)
    .filter((refusal) => found.get(refusal.jobUid)?.reason !== refusal.reason);
  const versions = new Map(waiting.map(({ uid, version }) => [uid, version]));
  if (changed.length > 0) await changeReasons(tx, changed, { ...at, versions });
  if (current.length > 0) {
    await tx.query(KEEP_REFUSALS, [
      current.map(({ refusal }) => refusal.jobUid),
      current.map(({ refusal, causeKey }) => json({ ...refusal, causeKey })),
      current.map(({ causeKey }) => causeKey),
      at.nowMs,
    ]);
  }
  return batch.flatMap(({ refusal }) => (found.has(refusal.jobUid) ? [] : [refusal.jobUid]));
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

/**
 * Locks the jobs, so that none of them is deleted before its refusal is written. A program of the version before keeps
 * refusals without the key of their cause.
 */
const KEEP_REFUSALS = `
insert into refusals (job_uid, refusal, at_ms)
select k.uid, k.refusal::json, $4
  from unnest($1::uuid[], $2::text[], $3::bigint[]) as k (uid, refusal, cause_key)
  join jobs j on j.uid = k.uid and j.phase = 'WAITING'
  left join refusals r on r.job_uid = k.uid
 where (r.refusal->>'causeKey')::bigint is distinct from k.cause_key
 order by k.uid
   for key share of j
on conflict (job_uid) do update set refusal = excluded.refusal, at_ms = excluded.at_ms`;

/** How many causes one read returns at most. */
const CAUSE_PAGE = 5_000;
/** Sorts before every uid. */
const FIRST = "00000000-0000-0000-0000-000000000000";

/** A page of the keys of the causes that are kept, of jobs whose uids come after `after`. Empty: the first page. */
export async function recordedCauses(executor: Executor, after: string) {
  const causes = await executor.query<{ jobUid: string; causeKey: number }>(CAUSES, [after || FIRST, CAUSE_PAGE]);
  return { causes, next: causes.length < CAUSE_PAGE ? null : (causes.at(-1)?.jobUid ?? null) };
}

const CAUSES = `
select job_uid as "jobUid", coalesce((refusal->>'causeKey')::bigint, 0) as "causeKey" from refusals
 where job_uid > $1 order by job_uid limit $2`;
