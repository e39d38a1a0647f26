import type { Job } from "../../src/core/job/job.ts";
import { applyAdmission, applyEviction, applyRefusal } from "../../src/core/plan/apply/apply-plan.ts";
import { applyPreemption, applyWithdrawal } from "../../src/core/plan/apply/apply-preemption.ts";
import type { Change } from "../../src/core/plan/facts/changes.ts";
import type { AdmissionBatch, AdmissionRecord, AdmitOutcome, Refusal } from "../../src/core/plan/model/plan-types.ts";
import type { PreemptOutcome } from "../../src/core/plan/model/preemption.ts";
import { stopOf } from "../../src/core/plan/model/queue-stop.ts";
import type { PlanCluster, PlanQueue, PlanSnapshot } from "../../src/core/plan/model/snapshot.ts";
import { treeQueue } from "../../src/core/plan/model/tree-queue.ts";
import type { Holder, Limits, PoolLimit } from "../../src/core/quota/counters.ts";
import type { Ledger } from "../../src/core/quota/ledger.ts";
import { TOKENS_MAX, WAITERS_MAX } from "../../src/core/quota/limits.ts";
import { queueLimitsOf } from "../../src/core/quota/tree.ts";
import type { FleetStore, PlannerStore } from "../../src/planner/ports.ts";
import { planGang, pool, sumsOf } from "../core/plan/plan-world.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { changesOf } from "../support/load-snapshot.ts";
import { MemoryLedger, type MemoryRow } from "../tokens/memory-ledger.ts";

/** The functions of the store that the planner needs, and its domain of the ledger. */
export type Operation =
  | keyof PlannerStore
  | keyof FleetStore
  | "raiseEpoch"
  | "unconfirmedReleases"
  | "confirmReleases";

/** Jobs, clusters and ledger in memory, with the guards that the planner's port promises. */
export class MemoryStore implements PlannerStore, FleetStore {
  jobs = new Map<string, Job>();
  clusters: PlanCluster[];
  queues: PlanQueue[];
  /** Pools with limits of their own. Queues alone limit the others. */
  pools: readonly PoolLimit[];
  /** The ledger, from which domains are opened. */
  readonly tokens = new MemoryLedger(() => this.#limits());
  refusals = new Map<string, Refusal>();
  /** The highest number of an admission that each job ever had. */
  numbers = new Map<string, number>();
  refusalsWritten = 0;
  #limitsVersion = 0;
  /** How often the words of why each job waits have changed. */
  readonly #reasons = new Map<string, number>();
  /** The gangs of the last read. */
  #read: ReadonlySet<string> = new Set();
  #limitsText = "";
  /** The epoch of the planner's lease in the database. */
  plannerEpoch = 1;
  /** Called before each operation, of a record with its jobs. A test changes records here, or throws. */
  before: (operation: Operation, jobUids: readonly string[]) => void = () => undefined;
  /** Called after an operation has taken effect. If it throws, the answer is lost. */
  after: (operation: Operation) => void = () => undefined;

  constructor(world: {
    jobs: readonly Job[];
    clusters: readonly PlanCluster[];
    queues: readonly PlanQueue[];
    pools?: readonly PoolLimit[];
  }) {
    for (const job of world.jobs) this.jobs.set(job.uid, job);
    this.clusters = [...world.clusters];
    this.queues = [...world.queues];
    this.pools = world.pools ?? [];
  }

  /** Each read has the whole fleet: what the reader knows of gangs, too, and those that are gone. */
  readFleet: FleetStore["readFleet"] = async (place) => {
    this.before("readFleet", []);
    const snapshot = this.#snapshot();
    const serial = (place?.serial ?? 0) + 1;
    const gangs = [...snapshot.waiting, ...snapshot.admitted];
    const gone = [...this.#read].filter((uid) => gangs.every((gang) => gang.uid !== uid));
    this.#read = new Set(gangs.map(({ uid }) => uid));
    const changes = changesOf(snapshot).map((change): Change => {
      if (change.kind === "capacity") return { ...change, sequence: serial };
      return change.kind === "unobserved" ? change : { ...change, version: serial };
    });
    const left = gone.map((uid): Change => ({ kind: "gang", uid, version: serial, gang: null }));
    return {
      restarts: place === null,
      changes: [...changes, ...left, ...this.#holds(serial)],
      whole: ["queue", "pool", "sum", "holds", "cluster"],
      callers: snapshot.callers,
      quotaEpoch: snapshot.quotaEpoch,
      place: { incarnation: "", position: 0, loadedTo: null, limitsVersion: null, transaction: "", listed: "", serial },
      more: false,
    };
  };

  /** The tokens of admissions that no job has yet. */
  #holds(version: number): readonly Change[] {
    return this.tokens.live.flatMap(({ holder, pool, amount }): Change[] => {
      if (holder.kind === "caller" || (this.numbers.get(holder.jobUid) ?? 0) >= holder.admission) return [];
      const holds = { admission: holder.admission, amounts: { [pool]: amount } };
      return [{ kind: "holds", uid: holder.jobUid, version, holds }];
    });
  }

  /** The next read has every gang. */
  gangsOf: FleetStore["gangsOf"] = async () => [];

  recordedCauses: FleetStore["recordedCauses"] = async () => ({ causes: [], next: null });

  /** The words of why a job waits change its record, and not its gang. */
  #generationOf({ uid, version }: Job): number {
    return version - (this.#reasons.get(uid) ?? 0);
  }

  #snapshot(): PlanSnapshot {
    const all = [...this.jobs.values()];
    const gang = (job: Job) =>
      planGang(job, { generation: this.#generationOf(job), lastAdmission: this.numbers.get(job.uid) ?? 0 });
    const live = (job: Job) => job.admissions.at(-1)?.state === "live";
    const snapshot: PlanSnapshot = {
      quotaEpoch: this.tokens.epoch,
      waiting: all.filter((job) => job.status.phase === "WAITING").map(gang),
      admitted: all.filter(live).map(gang),
      queues: this.queues,
      pools: this.#limits().pools,
      sums: sumsOf(this.tokens.live),
      callers: this.tokens.live.flatMap(({ holder, ...row }) => {
        return holder.kind === "caller" ? [{ ...row, caller: holder.name }] : [];
      }),
      clusters: this.clusters,
    };
    return structuredClone(snapshot);
  }

  recordAdmissions: PlannerStore["recordAdmissions"] = async (batch) => {
    this.before(
      "recordAdmissions",
      batch.records.map(({ planned }) => planned.jobUid),
    );
    const ended = new Set<string | null>();
    const queues = new Map(this.queues.map((queue) => [queue.name, queue]));
    const open = this.clusters.filter(({ name, cordoned, admissionCounter }) => {
      return !cordoned && batch.counters.get(name) === admissionCounter;
    });
    const names = new Set<string | null>([null, ...open.map(({ name }) => name)]);
    const outcomes = batch.records.map((record) => {
      const isStopped = stopOf(record.gang.queue, queues) !== null;
      const recorded = () => (isStopped ? "stale" : this.#recordOne(record, batch, names));
      const outcome = ended.has(record.chain) ? "heldUp" : recorded();
      if (outcome !== "recorded" && record.chain !== null) ended.add(record.chain);
      return outcome;
    });
    this.after("recordAdmissions");
    return outcomes;
  };

  #recordOne(
    { planned, allocations, fence }: AdmissionRecord,
    { quotaEpoch, plannerEpoch, nowMs }: AdmissionBatch,
    open: ReadonlySet<string | null>,
  ): AdmitOutcome {
    const job = this.jobs.get(planned.jobUid);
    const moved =
      job === undefined ||
      !open.has(planned.cluster) ||
      this.#generationOf(job) !== planned.generation ||
      plannerEpoch !== this.plannerEpoch ||
      quotaEpoch !== this.tokens.epoch;
    const applied = moved ? null : applyAdmission(job, planned, { kinds: OWN_KINDS, nowMs });
    if (moved || applied === null) return "stale";
    const holder: Holder = { kind: "admission", jobUid: job.uid, admission: planned.admission };
    if (allocations.length > 0) {
      const outcome = this.tokens.commitOne(quotaEpoch, { allocations, holder, fence: fence ?? 0n });
      if (outcome.kind !== "committed") return "refusedByLedger";
    }
    this.clusters = this.clusters.map((one) =>
      one.name === planned.cluster ? { ...one, admissionCounter: one.admissionCounter + 1 } : one,
    );
    this.numbers.set(job.uid, planned.admission);
    this.jobs.set(job.uid, applied.after);
    return "recorded";
  }

  recordEvictions: PlannerStore["recordEvictions"] = async (evictions, plannerEpoch) => {
    this.before("recordEvictions", []);
    if (plannerEpoch !== this.plannerEpoch) return [];
    const queues = new Map(this.queues.map((queue) => [queue.name, queue]));
    const after = evictions.flatMap((eviction) => {
      const job = this.jobs.get(eviction.jobUid);
      const drains = stopOf(eviction.queue, queues)?.drains === true;
      return (drains && job !== undefined && applyEviction(job, eviction)) || [];
    });
    for (const job of after) this.jobs.set(job.uid, job);
    this.after("recordEvictions");
    return after.map(({ uid }) => uid);
  };

  recordPreemptions: PlannerStore["recordPreemptions"] = async (records, plannerEpoch, nowMs) => {
    this.before("recordPreemptions", []);
    const outcomes = records.map((record): PreemptOutcome => {
      const { jobUid, generation } = record.planned;
      const nominee = this.jobs.get(jobUid);
      const isKnown = nominee !== undefined && this.#generationOf(nominee) === generation;
      const isCurrent = plannerEpoch === this.plannerEpoch && isKnown;
      const applied = isCurrent ? applyPreemption(this.jobs, record, nowMs) : null;
      for (const { after } of applied?.changes ?? []) this.jobs.set(after.uid, after);
      return applied === null ? { kind: "stale" } : { kind: "recorded", evicted: applied.evicted };
    });
    this.after("recordPreemptions");
    return outcomes;
  };

  recordWithdrawals: PlannerStore["recordWithdrawals"] = async (jobUids, plannerEpoch, nowMs) => {
    this.before("recordWithdrawals", jobUids);
    if (plannerEpoch !== this.plannerEpoch) return [];
    const changes = jobUids.flatMap((uid) => {
      const job = this.jobs.get(uid);
      return (job && applyWithdrawal(job, nowMs)) ?? [];
    });
    for (const { after } of changes) this.jobs.set(after.uid, after);
    this.after("recordWithdrawals");
    return changes.map(({ after }) => after.uid);
  };

  recordRefusals: PlannerStore["recordRefusals"] = async (refusals, plannerEpoch, nowMs) => {
    this.before("recordRefusals", []);
    const left: string[] = [];
    if (plannerEpoch !== this.plannerEpoch) return left;
    for (const { refusal } of refusals) {
      const job = this.jobs.get(refusal.jobUid);
      if (job === undefined || this.#generationOf(job) !== refusal.generation) {
        left.push(refusal.jobUid);
        continue;
      }
      this.refusalsWritten += 1;
      this.refusals.set(job.uid, refusal);
      if (job.status.waiting?.reason === refusal.reason) continue;
      this.jobs.set(job.uid, applyRefusal(job, refusal, nowMs).after);
      this.#reasons.set(job.uid, (this.#reasons.get(job.uid) ?? 0) + 1);
    }
    return left;
  };

  /** The same ledger behind the hooks. */
  readonly ledger: Ledger = {
    ...this.tokens,
    raiseEpoch: async (expected) => {
      this.before("raiseEpoch", []);
      return this.tokens.raiseEpoch(expected);
    },
    unconfirmedReleases: async (limit) => {
      this.before("unconfirmedReleases", []);
      return this.tokens.unconfirmedReleases(limit);
    },
    confirmReleases: async (refs) => {
      this.before("confirmReleases", []);
      return this.tokens.confirmReleases(refs);
    },
  };

  get rows(): readonly MemoryRow[] {
    return this.tokens.rows;
  }

  /** Ends a job as its worker would: pods gone, tokens released in the ledger. */
  finish(jobUid: string): void {
    for (const row of this.rows)
      if (row.holder.kind === "admission" && row.holder.jobUid === jobUid) row.released = true;
    this.jobs.delete(jobUid);
  }

  #limits(): Limits {
    const names = new Set(this.queues.flatMap((queue) => queue.quotas.map(({ flavor }) => flavor)));
    const pools = [...names].map((name) => this.pools.find((one) => one.pool === name) ?? pool(name));
    const limits = { pools, queues: queueLimitsOf(this.queues.map(treeQueue)) };
    const text = JSON.stringify(limits);
    if (text !== this.#limitsText) this.#limitsVersion += 1;
    this.#limitsText = text;
    return { ...limits, version: this.#limitsVersion, tokensMax: TOKENS_MAX, waitersMax: WAITERS_MAX };
  }
}
