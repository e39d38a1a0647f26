import type { Job } from "../../src/core/job/job.ts";
import type { Admission } from "../../src/core/job/status.ts";
import type { Refusal } from "../../src/core/plan/plan-types.ts";
import type { PlanCluster, PlanQueue, PlanSnapshot } from "../../src/core/plan/snapshot.ts";
import type { LedgerRow } from "../../src/core/quota/counters.ts";
import type { PlannerStore } from "../../src/planner/ports.ts";

type Row = LedgerRow & { released: boolean; confirmed: boolean };

/** Jobs, clusters and ledger in memory, with the guards that the planner's port promises. */
export class MemoryStore implements PlannerStore {
  jobs = new Map<string, Job>();
  clusters: PlanCluster[];
  queues: Omit<PlanQueue, "used">[];
  rows: Row[] = [];
  refusals = new Map<string, Refusal>();
  /** The highest number of an admission that each job ever had. */
  numbers = new Map<string, number>();
  refusalsWritten = 0;
  quotaEpoch = 0;
  /** The epoch of the lease as the database has it. */
  plannerEpoch = 1;
  /** Called before each operation; a test lets the world move on here, or throws. */
  before: (operation: keyof PlannerStore) => void = () => undefined;
  /** Called after an operation has taken effect: what it throws loses the answer. */
  after: (operation: keyof PlannerStore) => void = () => undefined;

  constructor(world: {
    jobs: readonly Job[];
    clusters: readonly PlanCluster[];
    queues: readonly Omit<PlanQueue, "used">[];
  }) {
    for (const job of world.jobs) this.jobs.set(job.uid, job);
    this.clusters = [...world.clusters];
    this.queues = [...world.queues];
  }

  snapshot: PlannerStore["snapshot"] = async () => {
    this.before("snapshot");
    const all = [...this.jobs.values()];
    const live = (job: Job) => job.admissions.at(-1)?.state === "live";
    const snapshot: PlanSnapshot = {
      quotaEpoch: this.quotaEpoch,
      waiting: all.filter((job) => job.status.phase === "WAITING"),
      lastAdmissions: Object.fromEntries(this.numbers),
      admitted: all.filter(live),
      queues: this.queues.map((queue) => ({ ...queue, used: this.#usedBy(queue.name) })),
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
      quotaEpoch !== this.quotaEpoch ||
      cluster.cordoned ||
      cluster.admissionCounter !== planned.admissionCounter ||
      (growing ? job.admissions.at(-1)?.state !== "live" : job.status.phase !== "WAITING");
    if (moved) return "stale";
    for (const line of lines) {
      const queue = this.queues.find((one) => one.name === line.queue);
      const limit = queue?.quotas.find((quota) => quota.flavor === line.pool)?.nominal ?? 0;
      if (line.amount > limit - (this.#usedBy(line.queue)[line.pool] ?? 0)) return "refusedByLedger";
    }
    const holder = { jobUid: job.uid, admission: planned.admission };
    for (const line of lines) {
      if (this.rows.some((row) => !row.released && row.pool === line.pool && row.token === line.token)) {
        throw new Error(`token ${line.token} is held`);
      }
      this.rows.push({ ...line, holder, fence: fence ?? 0n, released: false, confirmed: false });
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

  unconfirmedReleases: PlannerStore["unconfirmedReleases"] = async (limit) => {
    this.before("unconfirmedReleases");
    const open = this.rows.filter((row) => row.released && !row.confirmed).map((row) => row.fence);
    return [...new Set(open)].slice(0, limit);
  };

  confirmReleases: PlannerStore["confirmReleases"] = async (fences) => {
    this.before("confirmReleases");
    for (const row of this.rows) if (row.released && fences.includes(row.fence)) row.confirmed = true;
  };

  raiseQuotaEpoch: PlannerStore["raiseQuotaEpoch"] = async () => {
    this.before("raiseQuotaEpoch");
    this.quotaEpoch += 1;
    return {
      epoch: this.quotaEpoch,
      rows: this.rows.filter((row) => !row.released),
      limits: this.queues.flatMap((queue) =>
        queue.quotas.map(({ flavor, nominal }) => ({ queue: queue.name, pool: flavor, limit: nominal })),
      ),
    };
  };

  /** Ends a job as its worker would: pods gone, tokens released in the ledger. */
  finish(jobUid: string): void {
    for (const row of this.rows) if (row.holder.jobUid === jobUid) row.released = true;
    this.jobs.delete(jobUid);
  }

  #usedBy(queue: string): Record<string, number> {
    const used: Record<string, number> = {};
    for (const row of this.rows) {
      if (!row.released && row.queue === queue) used[row.pool] = (used[row.pool] ?? 0) + row.amount;
    }
    return used;
  }
}
