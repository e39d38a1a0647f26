import assert from "node:assert/strict";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { isConditionTrue } from "../../../src/core/job/conditions.ts";
import { type Job, liveAdmission } from "../../../src/core/job/job.ts";
import { canBeNominated } from "../../../src/core/job/nomination.ts";
import type { PlannedVictim, PreemptionRecord } from "../../../src/core/plan/model/preemption.ts";
import { SERVICE_KIND } from "./sim-service.ts";
import type { World } from "./world.ts";

const REASONS: readonly PlannedVictim["reason"][] = ["InClusterQueue", "InCohortReclamation", "InCohortFairSharing"];

/** Preempts jobs of a world for others at random, as the planner that leads, and knows which ones. */
export class Preemptions {
  readonly #world: World;
  readonly #db: Db;
  readonly #random: () => number;
  /** How often each job was asked to go, by uid. */
  readonly #asked = new Map<string, number>();

  constructor(world: World, db: Db, random: () => number) {
    this.#world = world;
    this.#db = db;
    this.#random = random;
  }

  /**
   * Nominates some job that waits for room, and asks up to two jobs that run to go for it. Returns words for the trace.
   */
  async preempt(): Promise<string> {
    const epoch = await this.#epoch();
    const jobs = await this.#world.jobs();
    const nominee = this.#pick(jobs.filter((job) => canBeNominated(job) && job.spec.kind !== SERVICE_KIND));
    if (epoch === null || nominee === undefined) return "nobody is preempted";
    const running = jobs.filter((job) => liveAdmission(job) !== null);
    const victims = [...new Set([this.#pick(running), this.#pick(running)])].flatMap((job) => this.#victimOf(job));
    const record = await this.#recordOf(nominee, victims);
    const [outcome] = await this.#world.store.planner.recordPreemptions([record], epoch, this.#world.clock.atMs);
    const names = victims.map(({ jobUid }) => jobs.find(({ uid }) => uid === jobUid)?.name).join(", ");
    if (outcome?.kind === "recorded") await this.#note(nominee, outcome.evicted);
    return `${nominee.name} preempts ${names}: ${outcome?.kind}`;
  }

  /** Gives up the nominations of all jobs. */
  async withdrawAll(): Promise<void> {
    const epoch = await this.#epoch();
    const uids = (await this.#world.jobs()).map(({ uid }) => uid);
    if (epoch !== null) await this.#world.store.planner.recordWithdrawals(uids, epoch, this.#world.clock.atMs);
  }

  /**
   * No job that does not wait is a nominee, none that runs is shown as preempted, and none counts too many. `alone`:
   * nobody else preempts jobs.
   */
  check(jobs: readonly Job[], alone: boolean): void {
    for (const { uid, name, status, admissions } of jobs) {
      if (status.phase !== "WAITING") assert.equal(status.nomination, undefined, `${name} is a nominee`);
      const runs = liveAdmission({ admissions }) !== null;
      assert.ok(!runs || !isConditionTrue(status.conditions, "Preempted"), `${name} runs and is shown as preempted`);
      const [counted = 0, asked = 0] = [status.attempts.preemptions, this.#asked.get(uid)];
      assert.ok(!alone || counted <= asked, `${name} counts ${counted} preemptions of ${asked}`);
    }
  }

  /** Both sides were recorded together. */
  async #note(nominee: Job, evicted: readonly PlannedVictim[]): Promise<void> {
    const jobs = new Map((await this.#world.jobs()).map((job) => [job.uid, job]));
    assert.ok(jobs.get(nominee.uid)?.status.nomination !== undefined, `${nominee.name} is no nominee`);
    for (const { jobUid, admission } of evicted) {
      const { name, status } = jobs.get(jobUid) ?? assert.fail(`victim ${jobUid} is gone`);
      assert.equal(status.eviction?.admission, admission, `${name} is not asked to go`);
      this.#asked.set(jobUid, (this.#asked.get(jobUid) ?? 0) + 1);
    }
  }

  async #recordOf({ uid, spec }: Job, victims: readonly PlannedVictim[]): Promise<PreemptionRecord> {
    const [gang] = await this.#world.store.explain.gangsNow([uid]);
    assert.ok(gang);
    const { askHash, generation, lastAdmission } = gang;
    const { name: cluster } = this.#pick(this.#world.clusters) ?? assert.fail();
    const gangFacts = { jobUid: uid, askHash, generation, admission: lastAdmission + 1 };
    const place = { cluster, admissionCounter: 0, members: {}, flavors: {}, flavorLabels: {}, allocations: [] };
    return {
      planned: { kind: "admit", ...gangFacts, ...place },
      victims,
      queue: spec.runPolicy.schedulingPolicy.queue,
    };
  }

  #victimOf(job: Job | undefined): readonly PlannedVictim[] {
    const live = job === undefined ? null : liveAdmission(job);
    if (job === undefined || live === null) return [];
    const { number: admission, members } = live;
    const reason = this.#pick(REASONS) ?? "InClusterQueue";
    return [{ jobUid: job.uid, queue: job.spec.runPolicy.schedulingPolicy.queue, admission, members, reason }];
  }

  #pick<T>(of: readonly T[]): T | undefined {
    return of[Math.floor(this.#random() * of.length)];
  }

  /** The epoch of the planner that leads. Null: none has led yet. */
  async #epoch(): Promise<number | null> {
    const [lease] = await this.#db.query<{ epoch: number }>("select epoch from leases where name = 'planner'");
    return lease?.epoch ?? null;
  }
}
