import { applyRefusal } from "../../../core/plan/apply/apply-plan.ts";
import { keptRefusal, type ReportedRefusal } from "../../../core/plan/explain/kept-reason.ts";
import type { Refusal } from "../../../core/plan/model/plan-types.ts";
import { compareText } from "../../../runtime/compare-text.ts";
import { append } from "../../../runtime/lists.ts";
import { type Db, type Executor, json } from "../db/db.ts";
import { FIRST_UID } from "../db/first-uid.ts";
import { holdsLease, PLANNER_LEASE } from "../fleet/leases.ts";
import { appendChanges } from "../jobs/append.ts";
import { JOB_READING, type JobRow } from "../jobs/job-row.ts";
import { type ChangeTime, updateJobs } from "../jobs/write-job.ts";

/** How many refusals one transaction records. It is bounded so that no transaction locks rows for long. */
const BATCH = 500;

/**
 * Keeps the cause of each waiting job's refusal, unless one with its key is kept already. A job's own record, and so
 * its version, changes only if the dominant reason did. Leaves out jobs that have moved on since they were planned, and
 * returns them. Does nothing if another planner has the lease.
 */
export async function recordRefusals(
  db: Db,
  refusals: readonly ReportedRefusal[],
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
    append(left, movedOn);
  }
  return left;
}

/** Reads without locks and writes only differences: so a batch without news writes nothing. */
async function recordBatch(
  tx: Executor,
  batch: readonly ReportedRefusal[],
  at: ChangeTime,
): Promise<readonly string[]> {
  const waiting = await tx.query<WaitingRow>(WAITING, [
    batch.map(({ refusal }) => refusal.jobUid),
    batch.map(({ refusal }) => refusal.generation),
    batch.map(({ causeKey }) => causeKey),
  ]);
  const found = new Map(waiting.map((row) => [row.uid, row]));
  const isNews = ({ refusal: { jobUid, reason } }: ReportedRefusal) => {
    const row = found.get(jobUid);
    return row !== undefined && (row.isNews || row.reason !== reason);
  };
  const news = batch.filter(isNews);
  const locked = news.length === 0 ? new Set() : await lockJobs(tx, news, found);
  const current = news.filter(({ refusal }) => locked.has(refusal.jobUid));
  const changed = current.filter(({ refusal }) => found.get(refusal.jobUid)?.reason !== refusal.reason);
  const changes = await changesOf(
    tx,
    changed.map(({ refusal }) => refusal),
    at.nowMs,
  );
  if (changes.length > 0) await updateJobs(tx, changes, at.kinds);
  if (current.length > 0) {
    await tx.query(KEEP_REFUSALS, [
      current.map(({ refusal }) => refusal.jobUid),
      current.map((said) => json(keptRefusal(said))),
      at.nowMs,
    ]);
  }
  await appendChanges(
    tx,
    changes.map(({ before, after, event }) => ({ before, after, events: [event] })),
    at.nowMs,
  );
  return batch.filter((one) => !found.has(one.refusal.jobUid) || (isNews(one) && !current.includes(one))).map(uidOf);
}

function uidOf({ refusal }: ReportedRefusal): string {
  return refusal.jobUid;
}

/** A waiting job, the reason that its record shows, and whether another cause is kept, or none. */
type WaitingRow = {
  readonly uid: string;
  readonly version: number;
  readonly reason: string | null;
  readonly isNews: boolean;
};

/** A program of the version before keeps refusals without their cause. */
const WAITING = `
select j.uid, j.version, j.status->'waiting'->>'reason' as reason,
       (k.refusal#>>'{cause,key}')::bigint is distinct from r.cause_key as "isNews"
  from jobs j
  join unnest($1::uuid[], $2::bigint[], $3::bigint[]) as r (uid, generation, cause_key)
    on r.uid = j.uid and r.generation = j.generation
  left join refusals k on k.job_uid = j.uid
 where j.gang_version = j.version and j.phase = 'WAITING' and j.cancel is null and j.delete_ms is null`;

/** Locks the jobs that still have the versions that were found. Returns their uids. */
async function lockJobs(
  tx: Executor,
  refusals: readonly ReportedRefusal[],
  found: ReadonlyMap<string, WaitingRow>,
): Promise<ReadonlySet<unknown>> {
  const uids = refusals.map(uidOf);
  const rows = await tx.query<{ uid: string }>(LOCK_JOBS, [uids, uids.map((uid) => found.get(uid)?.version)]);
  return new Set(rows.map(({ uid }) => uid));
}

const LOCK_JOBS = `
select j.uid
  from jobs j
 where j.uid = any($1::uuid[])
   and (j.uid, j.version) in (select uid, version from unnest($1::uuid[], $2::bigint[]) as r (uid, version))
 order by j.uid
   for no key update of j`;

/** Applies refusals to their jobs, which are locked. */
async function changesOf(tx: Executor, refusals: readonly Refusal[], nowMs: number) {
  if (refusals.length === 0) return [];
  const rows = await tx.query<JobRow>(JOBS, [refusals.map((refusal) => refusal.jobUid)]);
  const jobs = new Map(rows.map((row) => [row.uid, JOB_READING.BASIC.jobOf(row)]));
  return refusals.flatMap((refusal) => {
    const before = jobs.get(refusal.jobUid);
    return before === undefined ? [] : [applyRefusal(before, refusal, nowMs)];
  });
}

const JOBS = `select ${JOB_READING.BASIC.columns} from jobs j where j.uid = any($1::uuid[])`;

/** Of jobs that are locked. */
const KEEP_REFUSALS = `
insert into refusals (job_uid, refusal, at_ms)
select uid, refusal::json, $3 from unnest($1::uuid[], $2::text[]) as k (uid, refusal) order by uid
on conflict (job_uid) do update set refusal = excluded.refusal, at_ms = excluded.at_ms`;

/** How many causes one read returns at most. */
const CAUSE_PAGE = 5_000;

/**
 * A page of the keys of the causes that are kept, of jobs whose uids come after `after`. Empty: the first page. The key
 * is 0 if the job's record shows another reason, which must be told again.
 */
export async function recordedCauses(executor: Executor, after: string) {
  const causes = await executor.query<{ jobUid: string; causeKey: number }>(CAUSES, [after || FIRST_UID, CAUSE_PAGE]);
  return { causes, next: causes.length < CAUSE_PAGE ? null : (causes.at(-1)?.jobUid ?? null) };
}

const CAUSES = `
select r.job_uid as "jobUid",
       case when j.status->'waiting'->>'reason' = r.refusal->>'reason'
            then coalesce((r.refusal#>>'{cause,key}')::bigint, 0) else 0 end as "causeKey"
  from refusals r join jobs j on j.uid = r.job_uid
 where r.job_uid > $1 order by r.job_uid limit $2`;
