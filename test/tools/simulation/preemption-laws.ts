import assert from "node:assert/strict";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { liveAdmission } from "../../../src/core/job/job.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import type { PlannedVictim, PreemptionRecord } from "../../../src/core/plan/model/preemption.ts";
import type { PlannerStore } from "../../../src/planner/ports.ts";
import { canonicalJson } from "../../../src/runtime/json.ts";
import { isQueueFrozen, type LedgerView, PoolTree, pathOf, type ViewedAllocation, viewLedger } from "./ledger-view.ts";
import type { WorkerStore } from "./world.ts";

const HOUR_MS = 3_600_000;

type Gangs = ReadonlyMap<string, PlanGang>;

/** The world before a call of the planner. */
type Moment = {
  readonly view: LedgerView;
  readonly gangs: Gangs;
  readonly nowMs: number;
};

type Taken = { readonly victim: PlannedVictim; readonly nominee: PlanGang; readonly gang: PlanGang };

/** Judges each preemption that the planner records by the policies of its queues, as they are at that moment. */
export class PreemptionLaws {
  readonly #db: Db;
  readonly #gangsNow: (jobUids: readonly string[]) => Promise<readonly PlanGang[]>;
  /** The victims of each queue's nominees, and when. */
  readonly #caused: { readonly queue: string; readonly atMs: number }[] = [];
  /** The preempted admissions that have not been followed by another one yet, by job. */
  readonly #preempted = new Map<string, number>();
  readonly met = { preempted: 0, takenBack: 0, reserved: 0, readmitted: 0, undone: 0, reasons: new Set<string>() };

  constructor(db: Db, gangsNow: (jobUids: readonly string[]) => Promise<readonly PlanGang[]>) {
    this.#db = db;
    this.#gangsNow = gangsNow;
  }

  /** The planner's store, which throws if a record breaks a law. */
  watch(store: PlannerStore): PlannerStore {
    return {
      ...store,
      recordPreemptions: async (records, plannerEpoch, nowMs) => {
        const moment = await this.#moment(uidsOf(records), nowMs);
        const outcomes = await store.recordPreemptions(records, plannerEpoch, nowMs);
        const recorded = records.flatMap((record, at) => {
          const outcome = outcomes[at];
          return outcome?.kind === "recorded" ? [{ ...record, victims: outcome.evicted }] : [];
        });
        await this.#judge(recorded, moment);
        return outcomes;
      },
      recordEvictions: async (evictions, plannerEpoch, nowMs) => {
        const uids = evictions.map(({ jobUid }) => jobUid);
        const moment = await this.#moment(uids, nowMs);
        const evicted = await store.recordEvictions(evictions, plannerEpoch, nowMs);
        for (const jobUid of evicted) requireNotFrozen(moment, gangIn(moment.gangs, jobUid));
        return evicted;
      },
      recordAdmissions: async (batch) => {
        const outcomes = await store.recordAdmissions(batch);
        for (const [at, { planned }] of batch.records.entries()) {
          if (outcomes[at] === "recorded" && planned.kind === "admit") this.#admitted(planned);
        }
        return outcomes;
      },
    };
  }

  /** The workers' store, which throws if a gang that is preempted loses more than its admission. */
  watchWorker(store: WorkerStore): WorkerStore {
    return {
      ...store,
      record: (job, decision, ...rest) => {
        const { eviction, attempts } = job.status;
        const isVictim = eviction?.preemption !== undefined && liveAdmission(job)?.number === eviction.admission;
        const after = decision.record?.status;
        if (isVictim && after?.phase === "WAITING") {
          const { preemptions = 0, user, system, byReplica } = attempts;
          const kept = { preemptions: preemptions + 1, user, system, byReplica };
          const { user: users, system: systems, byReplica: replicas } = after.attempts;
          const found = { preemptions: after.attempts.preemptions, user: users, system: systems, byReplica: replicas };
          assert.deepEqual(found, kept, `${job.name} is preempted, and keeps its attempts`);
          this.met.undone += 1;
        }
        return store.record(job, decision, ...rest);
      },
    };
  }

  async #moment(uids: readonly string[], nowMs: number): Promise<Moment> {
    const gangs = await this.#gangsNow([...new Set(uids)]);
    return { view: await viewLedger(this.#db), gangs: new Map(gangs.map((gang) => [gang.uid, gang])), nowMs };
  }

  #admitted({ jobUid, admission }: { readonly jobUid: string; readonly admission: number }): void {
    const before = this.#preempted.get(jobUid);
    if (before === undefined) return;
    assert.ok(admission > before, `admission ${admission} of ${jobUid} follows admission ${before}`);
    this.#preempted.delete(jobUid);
    this.met.readmitted += 1;
  }

  async #judge(recorded: readonly PreemptionRecord[], moment: Moment): Promise<void> {
    const taken = recorded.flatMap(({ planned, victims }) =>
      victims.map((victim): Taken => {
        const nominee = gangIn(moment.gangs, planned.jobUid);
        return { victim, nominee, gang: gangIn(moment.gangs, victim.jobUid) };
      }),
    );
    for (const record of recorded) {
      if (record.reservation !== undefined) this.met.reserved += 1;
      if (record.victims.some(isWhole)) this.#requireBudget(record, moment);
    }
    for (const one of taken) {
      judgeVictim(one, moment);
      if (!isWhole(one.victim)) continue;
      this.met.reasons.add(one.victim.reason);
      if (one.victim.reason === "Reservation") this.met.takenBack += 1;
      else this.met.preempted += 1;
      this.#preempted.set(one.gang.uid, one.victim.admission);
    }
    const reclaimed = taken.filter(({ victim }) => isReclaimed(victim));
    if (reclaimed.length > 0) requireAboveQuota(reclaimed, moment, await this.#chargedWith(moment, taken));
  }

  /** A queue with a budget has preempted so many gangs within an hour at most. */
  #requireBudget({ planned, victims, reservation }: PreemptionRecord, { view, gangs, nowMs }: Moment): void {
    const { queue } = gangIn(gangs, planned.jobUid);
    for (const _ of victims.filter(isWhole)) this.#caused.push({ queue, atMs: nowMs });
    const max = pathOf(view, queue)[0]?.policy.preemptionsPerHour ?? null;
    // What has agreed to be taken back is taken whatever the budget says, and counts.
    if (max === null || reservation !== undefined) return;
    const count = this.#caused.filter((one) => one.queue === queue && one.atMs > nowMs - HOUR_MS).length;
    assert.ok(count <= max, `queue ${queue} has caused ${count} preemptions of ${max} within an hour`);
  }

  /** All that is used or booked: tokens of gangs that stay, and what nominees hold and lack. */
  async #chargedWith({ view }: Moment, taken: readonly Taken[]): Promise<readonly ViewedAllocation[]> {
    const victims = new Set(taken.map(({ gang }) => gang.uid));
    const after = await viewLedger(this.#db);
    const holders = view.allocations.flatMap(({ jobUid }) => jobUid ?? []);
    const nominees = after.heirs.map(({ jobUid }) => jobUid);
    const all = await this.#gangsNow([...new Set([...holders, ...nominees])]);
    const known = new Map(all.map((gang) => [gang.uid, gang]));
    const stays = ({ jobUid, admission, hold }: ViewedAllocation) => {
      const gang = jobUid === null ? undefined : known.get(jobUid);
      if (jobUid === null || hold) return true;
      if (gang === undefined || liveAdmission(gang)?.number !== admission) return false;
      return victims.has(jobUid) || !(gang.ends || gang.suspended || gang.evicted === true);
    };
    const pending = after.heirs.map(({ id, jobUid, pool, lacks }): ViewedAllocation => {
      const queue = known.get(jobUid)?.queue ?? null;
      const unnamed = { token: "", cutToken: null, admission: null, hold: true, heirs: [] };
      return { ...unnamed, id: -id, pool, queue, amount: lacks, jobUid };
    });
    return [...view.allocations.filter(stays), ...pending];
  }
}

function uidsOf(records: readonly PreemptionRecord[]): readonly string[] {
  return records.flatMap(({ planned, victims }) => [planned.jobUid, ...victims.map(({ jobUid }) => jobUid)]);
}

function gangIn(gangs: Gangs, uid: string): PlanGang {
  return gangs.get(uid) ?? assert.fail(`gang ${uid} is gone`);
}

/** False: its gang is elastic, keeps members and runs on. */
function isWhole({ keeps }: PlannedVictim): boolean {
  return keeps === undefined;
}

function isReclaimed({ reason }: PlannedVictim): boolean {
  return reason !== "InClusterQueue" && reason !== "Reservation";
}

function requireNotFrozen({ view }: Moment, { name, queue, ...gang }: PlanGang): void {
  const pools = Object.values(liveAdmission(gang)?.flavors ?? {});
  const frozen = view.pools.filter((pool) => pool.frozen && pools.includes(pool.name)).map((pool) => pool.name);
  assert.ok(!isQueueFrozen(view, queue), `${name} is to go, and its queue ${queue} is frozen`);
  assert.deepEqual(frozen, [], `${name} is to go, and it uses pools that are frozen`);
}

/** One victim: its whole gang, and allowed by the policies of both queues. */
function judgeVictim({ victim, nominee, gang }: Taken, moment: Moment): void {
  const { view, nowMs } = moment;
  const words = `${gang.name} (${victim.reason}) for ${nominee.name}`;
  const live = liveAdmission(gang);
  assert.equal(canonicalJson(victim.members), canonicalJson(live?.members), `${words}: not the whole gang`);
  requireNotFrozen(moment, gang);
  assert.ok(!isQueueFrozen(view, nominee.queue), `${words}: queue ${nominee.queue} is frozen`);
  const [own] = pathOf(view, nominee.queue);
  assert.ok(own);
  if (victim.reason === "Reservation") {
    assert.equal(gang.backfill, true, `${words}: it agreed to nothing`);
    return;
  }
  assert.notEqual(nominee.neverPreempts, true, `${words}: the nominee's class never preempts`);
  const lower = gang.priority < nominee.priority;
  const newer = gang.priority === nominee.priority && gang.createTimeMs > nominee.createTimeMs;
  const { withinQueue, reclaimWithinTree, borrowWithin } = own.policy;
  if (victim.reason === "InClusterQueue") {
    assert.equal(gang.queue, nominee.queue, `${words}: another queue`);
    const allowed = { NEVER: false, LOWER_PRIORITY: lower, LOWER_OR_NEWER_EQUAL_PRIORITY: lower || newer };
    assert.ok(allowed[withinQueue], `${words}: within_queue is ${withinQueue}`);
  } else {
    assert.notEqual(gang.queue, nominee.queue, `${words}: the same queue`);
    const allowed = { NEVER: false, LOWER_PRIORITY: lower, ANY: true };
    assert.ok(allowed[reclaimWithinTree], `${words}: reclaim_within_tree is ${reclaimWithinTree}`);
  }
  if (victim.reason === "InCohortReclaimWhileBorrowing") {
    const { policy, maxPriority } = borrowWithin;
    const isUpTo = maxPriority === null || gang.priority <= maxPriority;
    assert.ok(policy === "LOWER_PRIORITY" && lower && isUpTo, `${words}: borrow_within is ${policy} ${maxPriority}`);
  }
  if (victim.keeps !== undefined) {
    requireMinimumKept(gang, victim.keeps, words);
    return;
  }
  const untilMs = (live?.admitTimeMs ?? 0) + minRuntimeMs(view, gang, nominee.queue);
  assert.ok(untilMs <= nowMs, `${words}: it runs for too short a time, until ${untilMs - nowMs} ms from now`);
  const limits = pathOf(view, gang.queue).map(({ policy }) => policy.maxPreemptions);
  const max = Math.min(gang.maxPreemptions ?? Infinity, limits.find((limit) => limit !== null) ?? Infinity);
  assert.ok((gang.preemptions ?? 0) < max, `${words}: it was preempted ${gang.preemptions} times of ${max}`);
}

/** Growth is not protected, but the minimum of its gang is kept. */
function requireMinimumKept({ ask }: PlanGang, keeps: Readonly<Record<string, number>>, words: string): void {
  assert.ok(ask.elastic, `${words}: it is not elastic`);
  for (const { role, first } of ask.roles) {
    assert.ok((keeps[role] ?? 0) >= first, `${words}: it keeps ${keeps[role]} of ${role}, and ${first} at least`);
  }
}

/**
 * The nearest minimum that is set: from the victim's queue up, or from the child of the common ancestor up. None is: as
 * long as its last backoff.
 */
function minRuntimeMs(view: LedgerView, { queue: victim, preemptions = 0 }: PlanGang, nominee: string): number {
  const path = pathOf(view, victim);
  const above = new Set(pathOf(view, nominee).map(({ name }) => name));
  const at = victim === nominee ? 0 : path.findIndex(({ parent }) => parent === null || above.has(parent));
  const values = path
    .slice(at)
    .map(({ policy }) => (victim === nominee ? policy.minRuntimePreemptMs : policy.minRuntimeReclaimMs));
  const backoffMs = preemptions === 0 ? 0 : Math.min(600_000, 1_000 * 2 ** (preemptions - 1));
  return values.find((value) => value !== null) ?? backoffMs;
}

/**
 * The victims of other queues come from queues that use more than their quota. Their order is not known, so one of
 * those below a queue must have been taken when the others had left it above its quota still.
 */
function requireAboveQuota(taken: readonly Taken[], { view }: Moment, charged: readonly ViewedAllocation[]): void {
  const uids = new Set(taken.filter(({ victim }) => isWhole(victim)).map(({ gang }) => gang.uid));
  for (const { gang, nominee, victim } of taken) {
    const above = new Set(pathOf(view, nominee.queue).map(({ name }) => name));
    for (const { name: branch } of pathOf(view, gang.queue).filter(({ name }) => !above.has(name))) {
      const inBranch = taken.filter((one) => pathOf(view, one.gang.queue).some(({ name }) => name === branch));
      const isLast = (last: string) =>
        view.pools.some(({ name: pool }) => {
          const rest = charged.filter(({ jobUid }) => jobUid === null || jobUid === last || !uids.has(jobUid));
          const tree = new PoolTree(view, pool, rest);
          return tree.used(branch) > tree.quota(branch).nominal;
        });
      const words = `${gang.name} (${victim.reason}) for ${nominee.name}`;
      const some = inBranch.some((one) => isLast(one.gang.uid));
      assert.ok(some, `${words}: queue ${branch} is within its quota`);
    }
  }
}
