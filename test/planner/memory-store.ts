import type { DomainLedger } from "../../src/adapters/quota/ports.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { Admission } from "../../src/core/job/status.ts";
import type { Refusal } from "../../src/core/plan/plan-types.ts";
import { treeQueue } from "../../src/core/plan/quota-book.ts";
import type { PlanCluster, PlanQueue, PlanSnapshot } from "../../src/core/plan/snapshot.ts";
import type { Holder, Limits, PoolLimit } from "../../src/core/quota/counters.ts";
import { TOKENS_MAX, WAITERS_MAX } from "../../src/core/quota/limits.ts";
import { queueLimitsOf } from "../../src/core/quota/tree.ts";
import type { PlannerStore } from "../../src/planner/ports.ts";
import { pool, sumsOf } from "../core/plan-world.ts";
import { MemoryLedger, type MemoryRow } from "../quota/memory-ledger.ts";

/** What the planner asks of the store, and its domain of the ledger. */
export type Operation = keyof PlannerStore | "raiseEpoch" | "unconfirmedReleases" | "confirmReleases";

/** Jobs, clusters and ledger in memory, with the guards that the planner's port promises. */
export class MemoryStore implements PlannerStore {
  jobs = new Map<string, Job>();
  clusters: PlanCluster[];
  queues: PlanQueue[];
  /** Pools with limits of their own; the others are as large as their queues make them. */
  pools: readonly PoolLimit[];
  /** The ledger, which domains are opened from. */
  readonly tokens = new MemoryLedger(() => this.#limits());
  refusals = new Map<string, Refusal>();
  /** The highest number of an admission that each job ever had. */
  numbers = new Map<string, number>();
  refusalsWritten = 0;
  #limitsVersion = 0;
  #limitsText = "";
  /** The epoch of the lease as the database has it. */
  plannerEpoch = 1;
  /** Called before each operation; a test lets the world move on here, or throws. */
  before: (operation: Operation) => void = () => undefined;
  /** Called after an operation has taken effect: what it throws loses the answer. */
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

  snapshot: PlannerStore["snapshot"] = async () => {
    this.before("snapshot");
    const all = [...this.jobs.values()];
    const live = (job: Job) => job.admissions.at(-1)?.state === "live";
    const snapshot: PlanSnapshot = {
      quotaEpoch: this.tokens.epoch,
      waiting: all.filter((job) => job.status.phase === "WAITING"),
      lastAdmissions: Object.fromEntries(this.numbers),
      admitted: all.filter(live),
      queues: this.queues,
      pools: this.#limits().pools,
      sums: sumsOf(this.tokens.live),
      callers: this.tokens.live.flatMap(({ holder, ...row }) => {
        return holder.kind === "caller" ? [{ ...row, caller: holder.name }] : [];
      }),
      clusters: this.clusters,
    };
    return structuredClone(snapshot);
  };

  recordAdmission: PlannerStore["recordAdmission"] = async ({
    planned,
    lines,
    fence,
    quotaEpoch,
    plannerEpoch,
    nowMs,
  }) => {
    this.before("recordAdmission");
    const job = this.jobs.get(planned.jobUid);
    const cluster = this.clusters.find((one) => one.name === planned.cluster);
    const growing = planned.kind === "grow";
    const moved =
      job === undefined ||
      cluster === undefined ||
      job.version !== planned.jobVersion ||
      plannerEpoch !== this.plannerEpoch ||
      quotaEpoch !== this.tokens.epoch ||
      cluster.cordoned ||
      cluster.admissionCounter !== planned.admissionCounter ||
      (growing ? job.admissions.at(-1)?.state !== "live" : job.status.phase !== "WAITING");
    if (moved) return "stale";
    const holder: Holder = { kind: "admission", jobUid: job.uid, admission: planned.admission };
    if (lines.length > 0) {
      const outcome = this.tokens.commitOne(quotaEpoch, { lines, holder, fence: fence ?? 0n });
      if (outcome.kind !== "committed") return "refusedByLedger";
    }
    this.clusters = this.clusters.map((one) =>
      one === cluster ? { ...one, admissionCounter: one.admissionCounter + 1 } : one,
    );
    this.numbers.set(job.uid, planned.admission);
    const { cluster: name, members, flavors, nodeLabels, admission: number } = planned;
    const fresh: Admission = {
      number,
      cluster: name,
      admitTimeMs: nowMs,
      members,
      flavors,
      nodeLabels,
      state: "live",
      tokensReleasedMs: null,
      goneMs: null,
      belowMinSinceMs: nowMs,
    };
    const last = job.admissions.at(-1);
    const admissions =
      growing && last ? [...job.admissions.slice(0, -1), { ...last, members }] : [...job.admissions, fresh];
    const status = growing ? job.status : { ...job.status, phase: "ADMITTED" as const };
    this.jobs.set(job.uid, { ...job, version: job.version + 1, status, admissions });
    this.after("recordAdmission");
    return "recorded";
  };

  recordRefusals: PlannerStore["recordRefusals"] = async (refusals, plannerEpoch) => {
    this.before("recordRefusals");
    if (plannerEpoch !== this.plannerEpoch) return;
    for (const refusal of refusals) {
      const job = this.jobs.get(refusal.jobUid);
      if (job?.version !== refusal.jobVersion) continue;
      this.refusalsWritten += 1;
      this.refusals.set(job.uid, refusal);
      if (job.status.waiting?.reason === refusal.reason) continue;
      const waiting = { reason: refusal.reason, message: refusal.message, sinceMs: 0 };
      this.jobs.set(job.uid, { ...job, version: job.version + 1, status: { ...job.status, waiting } });
    }
  };

  /** The same ledger behind the hooks. */
  readonly ledger: DomainLedger = {
    ...this.tokens,
    raiseEpoch: async (expected) => {
      this.before("raiseEpoch");
      return this.tokens.raiseEpoch(expected);
    },
    unconfirmedReleases: async (limit) => {
      this.before("unconfirmedReleases");
      return this.tokens.unconfirmedReleases(limit);
    },
    confirmReleases: async (refs) => {
      this.before("confirmReleases");
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
