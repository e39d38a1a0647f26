import { isEvicted, type Job, liveAdmission, shrinksTo } from "../../../core/job/job.ts";
import { applyPreemption, applyWithdrawal, type PreemptionChange } from "../../../core/plan/apply/apply-preemption.ts";
import type { OvertakenGang, PreemptionRecord, PreemptOutcome } from "../../../core/plan/model/preemption.ts";
import { append } from "../../../runtime/lists.ts";
import { frozenPools } from "../admin/freezes.ts";
import { type Db, type Executor, undoable } from "../db/db.ts";
import { holdsLease, PLANNER_LEASE } from "../fleet/leases.ts";
import { appendChanges } from "../jobs/append.ts";
import { type ChangeTime, updateJobs } from "../jobs/write-job.ts";
import { changeHeirs } from "../ledger/give-back.ts";
import type { NamedHeir } from "../ledger/name-heirs.ts";
import { type LockedJob, lockJobs } from "./lock-jobs.ts";
import { lockQueues } from "./lock-queues.ts";
import { countPreemptions } from "./queue-preemptions.ts";

/** How many jobs one transaction changes, unless one preemption has more. */
const BATCH = 256;

/**
 * Records preemptions: of each one its nominee, which becomes the heir of its victims' tokens, and all requests to
 * undo its victims, for the workers to carry out, or nothing. Preemptions share transactions, but each has its own
 * guards. Returns the outcomes in the order of the records. If another planner has the lease, all are stale.
 */
export async function recordPreemptions(
  db: Db,
  records: readonly PreemptionRecord[],
  plannerEpoch: number,
  at: ChangeTime,
): Promise<readonly PreemptOutcome[]> {
  await giveUpQuota(db, records, plannerEpoch, at);
  const outcomes: PreemptOutcome[] = [];
  for (const batch of batchesOf(records)) {
    const recorded = await undoable<readonly PreemptOutcome[]>(db, (tx, undo) => {
      return recordBatch(tx, batch, { plannerEpoch, at, undo: () => undo(batch.map(() => STALE)) });
    });
    append(outcomes, recorded);
  }
  return outcomes;
}

/**
 * What others lend is not kept, also if it was the queue's own before: reservations that borrow from now on give up
 * their holds first. That is a transaction of its own, because grants wait for a batch. If the reservation is not
 * recorded then, the next round plans it again.
 */
async function giveUpQuota(
  db: Db,
  records: readonly PreemptionRecord[],
  plannerEpoch: number,
  at: ChangeTime,
): Promise<void> {
  const borrowing = records.filter((record) => !keepsQuota(record)).map(({ planned }) => planned.jobUid);
  if (borrowing.length === 0) return;
  await db.tx(async (tx) => {
    if (!(await holdsLease(tx, { name: PLANNER_LEASE, epoch: plannerEpoch }))) return;
    const locked = await lockJobs(tx, borrowing);
    await changeHeirs(tx, { named: [], withdrawn: [...locked.keys()] }, at.nowMs);
  });
}

function batchesOf(records: readonly PreemptionRecord[]): readonly (readonly PreemptionRecord[])[] {
  const batches: PreemptionRecord[][] = [];
  let jobs = BATCH;
  for (const record of records) {
    const size = jobsOf(record).length;
    if (jobs + size > BATCH) {
      batches.push([]);
      jobs = 0;
    }
    batches.at(-1)?.push(record);
    jobs += size;
  }
  return batches;
}

const STALE: PreemptOutcome = { kind: "stale" };

/** Undoes everything: all records of the batch are stale. */
type Undo = () => never;

async function recordBatch(
  tx: Executor,
  records: readonly PreemptionRecord[],
  { plannerEpoch, at, undo }: { readonly plannerEpoch: number; readonly at: ChangeTime; readonly undo: Undo },
): Promise<readonly PreemptOutcome[]> {
  const isLeading = await holdsLease(tx, { name: PLANNER_LEASE, epoch: plannerEpoch });
  const open = isLeading ? await inOpenQueues(tx, records) : [];
  if (open.length === 0) return records.map(() => STALE);
  const locked = await lockJobs(tx, [...new Set(open.flatMap(jobsOf))]);
  const { outcomes, changes } = decide(open, locked, at.nowMs);
  await write(tx, changes, at);
  const recorded = open.filter((_record, place) => outcomes[place]?.kind === "recorded");
  const lock = await countPreemptions(
    tx,
    open.map((record, place) => countedOf(record, outcomes[place])),
    at.nowMs,
  );
  const named = recorded.filter(keepsQuota).map((record) => heirOf(record, locked));
  const passed = recorded.flatMap(({ takesOver = [] }) => takesOver);
  const withdrawn = passed.filter(({ victims }) => victims !== undefined).map(({ jobUid }) => jobUid);
  const ceding = passed.filter(({ victims }) => victims === undefined).map(({ jobUid }) => jobUid);
  await changeHeirs(tx, { named, withdrawn, ceding }, at.nowMs, lock);
  // It is the last lock, so a pool that was frozen meanwhile undoes the others of the batch, too. They come again.
  if ((await frozenPools(tx, changes.flatMap(poolsTaken))).size > 0) undo();
  return records.map((record) => outcomes[open.indexOf(record)] ?? STALE);
}

/** The jobs that a record changes or depends on. */
function jobsOf({ planned, victims, reservation, takesOver = [] }: PreemptionRecord): readonly string[] {
  const awaited = [...(reservation?.awaits ?? []), ...victimsPassed(takesOver)];
  return [planned, ...victims, ...awaited, ...takesOver].map(({ jobUid }) => jobUid);
}

/** The victims of nominees that a gang passes. It waits for them instead. */
function victimsPassed(takesOver: readonly OvertakenGang[]): NonNullable<OvertakenGang["victims"]> {
  return takesOver.flatMap(({ victims }) => victims ?? []);
}

function countedOf({ queue }: PreemptionRecord, outcome: PreemptOutcome | undefined) {
  return { queue, victims: outcome?.kind === "recorded" ? outcome.evicted.length : 0 };
}

/** The pools of an admission that a change requests to undo, or to give up members. */
function poolsTaken({ before, after }: PreemptionChange): readonly string[] {
  const isAsked = (isEvicted(after) && !isEvicted(before)) || shrinksTo(after) !== shrinksTo(before);
  return isAsked ? Object.values(liveAdmission(before)?.flavors ?? {}) : [];
}

function keepsQuota({ reservation }: PreemptionRecord): boolean {
  return reservation?.keepsQuota !== false;
}

/** What ends of the victims belongs to the nominee, up to all that it needs: it may lose what is free until then. */
function heirOf(
  { planned, victims, queue, reservation, takesOver = [] }: PreemptionRecord,
  locked: ReadonlyMap<string, LockedJob>,
): NamedHeir {
  const { jobUid, admission, allocations } = planned;
  const [{ project, namespace } = { project: "", namespace: "" }] = allocations;
  const needs = allocations.filter(({ amount }) => amount > 0).map(({ pool, amount }) => ({ pool, amount }));
  const awaits = [...(reservation?.awaits ?? []), ...victimsPassed(takesOver)].filter((one) => locked.has(one.jobUid));
  return { jobUid, admission, queue, project, namespace, needs, victims: [...victims, ...awaits, ...takesOver] };
}

/**
 * The preemptions whose nominees are in queues that nobody has stopped, and whose victims are in none that is frozen.
 * These queues are locked.
 */
async function inOpenQueues(tx: Executor, records: readonly PreemptionRecord[]): Promise<readonly PreemptionRecord[]> {
  const queues = records.flatMap(({ queue, victims }) => [queue, ...victims.map((victim) => victim.queue)]);
  const haltOf = await lockQueues(tx, queues);
  const isFrozen = ({ queue }: { readonly queue: string }) => haltOf(queue)?.freeze !== undefined;
  return records.filter(({ queue, victims }) => haltOf(queue) === null && !victims.some(isFrozen));
}

/**
 * Decides in the order of the batch which preemptions are recorded: of those whose jobs are locked, which the nominees
 * in queues that are stopped are not. A job that one has changed keeps its change.
 */
function decide(
  records: readonly PreemptionRecord[],
  locked: ReadonlyMap<string, LockedJob>,
  nowMs: number,
): { readonly outcomes: readonly PreemptOutcome[]; readonly changes: readonly PreemptionChange[] } {
  const jobs = new Map<string, Job>([...locked].map(([uid, { job }]) => [uid, job]));
  const nominated = new Set<string>();
  const changes: PreemptionChange[] = [];
  const outcomes = records.map((record): PreemptOutcome => {
    const { jobUid, generation, askHash } = record.planned;
    const gang = locked.get(jobUid);
    const isCurrent = gang?.generation === generation && gang.askHash === askHash && !nominated.has(jobUid);
    const applied = isCurrent ? applyPreemption(jobs, record, nowMs) : null;
    if (applied === null) return STALE;
    nominated.add(jobUid);
    for (const { after } of applied.changes) jobs.set(after.uid, after);
    append(changes, applied.changes);
    return { kind: "recorded", evicted: applied.evicted };
  });
  return { outcomes, changes };
}

/**
 * Ends the nominations of these jobs, and releases their holds. Returns those that had one. Does nothing if another
 * planner has the lease.
 */
export function recordWithdrawals(
  db: Db,
  jobUids: readonly string[],
  plannerEpoch: number,
  at: ChangeTime,
): Promise<readonly string[]> {
  return db.tx(async (tx) => {
    if (!(await holdsLease(tx, { name: PLANNER_LEASE, epoch: plannerEpoch }))) return [];
    const locked = await lockJobs(tx, jobUids);
    const changes = [...locked.values()].flatMap(({ job }) => applyWithdrawal(job, at.nowMs) ?? []);
    await write(tx, changes, at);
    const withdrawn = changes.map(({ after }) => after.uid);
    await changeHeirs(tx, { named: [], withdrawn }, at.nowMs);
    return withdrawn;
  });
}

async function write(tx: Executor, changes: readonly PreemptionChange[], at: ChangeTime): Promise<void> {
  if (changes.length === 0) return;
  await updateJobs(
    tx,
    changes.map(({ before, after }) => ({ before, after, recheckAtMs: at.nowMs })),
    at.kinds,
  );
  await appendChanges(tx, changes, at.nowMs);
}
