import { type Placement, withRuns } from "../../../core/job/placement/placement.ts";
import type { Registry } from "../../../core/kinds/registry.ts";
import { type AppliedAdmission, applyAdmission } from "../../../core/plan/apply/apply-plan.ts";
import type {
  AdmissionBatch,
  AdmissionRecord,
  AdmitOutcome,
  PlannedAdmission,
} from "../../../core/plan/model/plan-types.ts";
import type { LedgerGrant } from "../../../core/quota/ledger.ts";
import { type Db, type Executor, undoable } from "../db/db.ts";
import { holdsLease, PLANNER_LEASE } from "../fleet/leases.ts";
import { appendChanges } from "../jobs/append.ts";
import { updateJobs, writeAdmissions } from "../jobs/write-job.ts";
import { takeFences } from "../ledger/admission-fences.ts";
import { commitGrantsIn } from "../ledger/commit-grants.ts";
import { QUEUES_DOMAIN } from "../ledger/quota-domains.ts";
import type { LimitBounds } from "../ledger/quota-limits.ts";
import { type LockedClusters, type LockedGang, lockClusters, lockGangs, NO_CLUSTERS } from "./lock-gangs.ts";
import { lockQueues } from "./lock-queues.ts";

/** How often a batch is tried, each time without the gangs that the ledger has refused before. */
const ATTEMPTS_MAX = 3;

/**
 * Records admissions and growths of gangs: of each one its admission, ledger, status, log and event, or nothing. The
 * number of statements does not grow with the batch. Each gang has its own guards; one that has moved on is left out,
 * and so are those behind it in its chain. Returns the outcomes in the order of the records.
 */
export async function recordAdmissions(
  db: Db,
  batch: AdmissionBatch,
  given: { readonly bounds: LimitBounds; readonly kinds: Registry },
): Promise<readonly AdmitOutcome[]> {
  const refused = new Map<AdmissionRecord, AdmitOutcome>();
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const tried = await undoable<Attempt>(db, async (tx, undo) => {
      const attempt = await recordBut(tx, batch, refused, given);
      return attempt.kind === "refused" ? undo(attempt) : attempt;
    });
    if (tried.kind === "recorded") return tried.outcomes;
    for (const [record, outcome] of tried.refused) refused.set(record, outcome);
  }
  return batch.records.map((record) => refused.get(record) ?? "stale");
}

type Attempt =
  | { readonly kind: "recorded"; readonly outcomes: readonly AdmitOutcome[] }
  /** The ledger has refused some gangs, so that nothing of the batch may be committed. */
  | { readonly kind: "refused"; readonly refused: ReadonlyMap<AdmissionRecord, AdmitOutcome> };

/** Records a batch without the gangs that the ledger has refused. The ledger comes last, since other grants wait. */
async function recordBut(
  tx: Executor,
  batch: AdmissionBatch,
  refused: ReadonlyMap<AdmissionRecord, AdmitOutcome>,
  { bounds, kinds }: { readonly bounds: LimitBounds; readonly kinds: Registry },
): Promise<Attempt> {
  const { plannerEpoch, nowMs } = batch;
  const isLeading = await holdsLease(tx, { name: PLANNER_LEASE, epoch: plannerEpoch });
  const open = isLeading ? await inOpenQueues(tx, batch.records) : [];
  const gangs = open.length > 0 ? await lockGangs(tx, open) : new Map<string, LockedGang>();
  const left = leftClusters(batch.records, gangs);
  const clusters = gangs.size > 0 ? await lockClusters(tx, batch.counters, left) : NO_CLUSTERS;
  const fences = gangs.size > 0 ? await fencesOf(tx, batch.records) : new Map<AdmissionRecord, string>();
  const { outcomes, applied } = decide(batch, refused, { gangs, clusters, kinds, fences });
  if (applied.length === 0) return { kind: "recorded", outcomes };
  await updateJobs(
    tx,
    applied.map(({ before, after }) => ({ before, after, recheckAtMs: nowMs })),
    kinds,
  );
  await writeAdmissions(
    tx,
    applied.flatMap(({ after: { uid: jobUid }, admission, placement, left }) => [
      ...(left === undefined ? [] : [{ jobUid, admission: left.admission }]),
      { jobUid, admission, placement },
    ]),
  );
  await enterClusters(
    tx,
    applied.map(({ record }) => record),
  );
  await appendChanges(
    tx,
    applied.map(({ before, after, event, left }) => {
      return { before, after, events: left === undefined ? [event] : [left.event, event] };
    }),
    nowMs,
  );
  const failed = await commit(tx, { ...batch, records: applied.map(({ record }) => record) }, bounds);
  return failed.size > 0 ? { kind: "refused", refused: failed } : { kind: "recorded", outcomes };
}

/**
 * The planned admissions and growths of gangs in queues that nobody has stopped, and all repairs, whose queues are
 * locked. A stop leaves what runs alone.
 */
async function inOpenQueues(tx: Executor, records: readonly AdmissionRecord[]): Promise<readonly PlannedAdmission[]> {
  const stopOf = await lockQueues(
    tx,
    records.map(({ gang }) => gang.queue),
  );
  const isOpen = ({ gang, planned }: AdmissionRecord) => planned.kind === "repair" || stopOf(gang.queue) === null;
  return records.filter(isOpen).map(({ planned }) => planned);
}

/** A fence for each new admission of a batch. */
async function fencesOf(
  tx: Executor,
  records: readonly AdmissionRecord[],
): Promise<ReadonlyMap<AdmissionRecord, string>> {
  const admissions = records.filter(({ planned }) => planned.kind === "admit");
  const taken = await takeFences(tx, admissions.length);
  return new Map(admissions.map((record, at) => [record, taken[at] ?? ""]));
}

type AppliedRecord = AppliedAdmission & {
  readonly record: AdmissionRecord;
  /** Null: the planned nodes stay as they are. */
  readonly placement: Placement | null;
};

/** Decides in the order of the batch which gangs are recorded, and applies their admissions to their jobs. */
function decide(
  { records, nowMs }: AdmissionBatch,
  refused: ReadonlyMap<AdmissionRecord, AdmitOutcome>,
  locked: {
    readonly gangs: ReadonlyMap<string, LockedGang>;
    readonly clusters: LockedClusters;
    readonly kinds: Registry;
    readonly fences: ReadonlyMap<AdmissionRecord, string>;
  },
): { readonly outcomes: readonly AdmitOutcome[]; readonly applied: readonly AppliedRecord[] } {
  const applied: AppliedRecord[] = [];
  const gangs = new Map(locked.gangs);
  const ended = new Set<string | null>();
  const outcomeOf = (record: AdmissionRecord): AdmitOutcome => {
    if (ended.has(record.chain)) return "heldUp";
    const known = refused.get(record);
    if (known !== undefined) return known;
    const { planned } = record;
    const gang = locked.clusters.open.has(planned.cluster) ? gangs.get(planned.jobUid) : undefined;
    if (gang === undefined || isTooLate(record, gang) || hasReturned(record, gang, locked.clusters)) return "stale";
    const admitted = applyAdmission(gang.job, planned, {
      kinds: locked.kinds,
      nowMs,
      fence: locked.fences.get(record),
    });
    if (admitted === null) return "stale";
    gangs.delete(planned.jobUid);
    applied.push({ ...admitted, record, placement: placementAfter(planned, gang.placement) });
    return "recorded";
  };
  const outcomes = records.map((record) => {
    const outcome = outcomeOf(record);
    if (outcome !== "recorded" && record.chain !== null) ended.add(record.chain);
    return outcome;
  });
  return { outcomes, applied };
}

/** The planned nodes once an admission or a growth is recorded. Null: it plans none. */
function placementAfter({ kind, runs = [] }: PlannedAdmission, before: Placement | null): Placement | null {
  return runs.length === 0 ? null : withRuns(kind === "admit" ? null : before, runs);
}

/**
 * True while objects of an older admission may be in the cluster. True also if the job ever had an admission of that
 * number: objects of an older number are never adopted. For a repair, true if members were planned anew meanwhile.
 */
function isTooLate({ planned }: AdmissionRecord, { lastAdmission, entered, placement }: LockedGang): boolean {
  if (planned.kind === "repair") return placement?.version !== planned.repairs;
  if (planned.kind === "grow") return false;
  return lastAdmission >= planned.admission || entered.includes(planned.cluster ?? "");
}

/** The clusters that gangs of a batch are to leave because they are lost. */
function leftClusters(records: readonly AdmissionRecord[], gangs: ReadonlyMap<string, LockedGang>): readonly string[] {
  return records.flatMap(({ planned }) => leftCluster(planned, gangs.get(planned.jobUid)) ?? []);
}

function leftCluster({ movesFrom }: PlannedAdmission, gang: LockedGang | undefined): string | null {
  return gang?.job.admissions.find(({ number }) => number === movesFrom)?.cluster ?? null;
}

/** True if the cluster that a gang is to leave has answered since the gang was to leave it: the gang stays there. */
function hasReturned({ planned }: AdmissionRecord, gang: LockedGang, { lost }: LockedClusters): boolean {
  if (planned.movesFrom === undefined) return false;
  return lost.get(leftCluster(planned, gang) ?? "") !== gang.job.status.move?.lostMs;
}

/**
 * Counts the admissions to their clusters, and notes that objects of them may be there from now on. Clears the
 * refusals of their jobs.
 */
async function enterClusters(tx: Executor, records: readonly AdmissionRecord[]): Promise<void> {
  const planned = records.map((record) => record.planned);
  const raised = new Map<string, number>();
  for (const { cluster } of planned) if (cluster !== null) raised.set(cluster, (raised.get(cluster) ?? 0) + 1);
  const entering = planned.filter(({ kind }) => kind === "admit");
  await tx.query(ENTER_CLUSTERS, [
    planned.map(({ jobUid }) => jobUid),
    [...raised.keys()],
    [...raised.values()],
    entering.map(({ jobUid }) => jobUid),
    entering.map(({ admission }) => admission),
    entering.map(({ cluster }) => cluster ?? ""),
  ]);
}

const ENTER_CLUSTERS = `
with cleared as (
  delete from refusals where job_uid = any($1::uuid[])
), raised as (
  update clusters c set admission_counter = c.admission_counter + r.raised
    from unnest($2::text[], $3::int[]) as r (name, raised)
   where c.name = r.name
)
insert into admission_clusters (job_uid, admission, cluster)
select job_uid, admission, cluster
  from unnest($4::uuid[], $5::int[], $6::text[]) as e (job_uid, admission, cluster)`;

/** Records the grants of these gangs. Returns those that the ledger refuses, with their outcomes. */
async function commit(
  tx: Executor,
  { records, quotaEpoch, nowMs }: AdmissionBatch,
  bounds: LimitBounds,
): Promise<ReadonlyMap<AdmissionRecord, AdmitOutcome>> {
  const granted = records.filter(({ planned }) => planned.allocations.length > 0 || planned.movesFrom !== undefined);
  if (granted.length === 0) return new Map();
  const request = { domain: QUEUES_DOMAIN, epoch: quotaEpoch, grants: granted.map(grantOf), nowMs };
  const outcomes = await commitGrantsIn(tx, request, bounds);
  const failed = new Map<AdmissionRecord, AdmitOutcome>();
  for (const [at, record] of granted.entries()) {
    const kind = outcomes[at]?.kind;
    const isStale = kind === "epochMoved" || kind === "lacksHolds";
    if (kind !== "committed") failed.set(record, isStale ? "stale" : "refusedByLedger");
  }
  return failed;
}

/** An admission whose holds cover all that it needs has no grant of the counters, so no fence. */
function grantOf({ planned, allocations, fence }: AdmissionRecord): LedgerGrant {
  const { kind, jobUid, admission } = planned;
  if (fence === null && allocations.length > 0) {
    throw new Error(`the planner sent allocations of job ${jobUid} without the fence of their grant`);
  }
  const grant = { allocations, holder: { kind: "admission", jobUid, admission } as const, fence: fence ?? 0n };
  if (kind !== "admit") return grant;
  const unnamed = { token: "", caps: { project: null, namespace: null }, leaseMs: null };
  const moves = planned.movesFrom === undefined ? {} : { movesFrom: planned.movesFrom };
  return { ...grant, needs: planned.allocations.map((one) => ({ ...one, ...unnamed })), ...moves };
}
