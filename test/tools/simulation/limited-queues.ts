import assert from "node:assert/strict";
import { type Job, liveAdmission } from "../../../src/core/job/job.ts";
import type { StopPolicy } from "../../../src/core/plan/model/queue-stop.ts";
import type { World } from "./world.ts";

const POLICIES: readonly StopPolicy[] = ["NONE", "HOLD", "HOLD", "HOLD_AND_DRAIN", "HOLD_AND_DRAIN"];

/** Stops, resumes and limits the queues of a world, and knows what may run in them. */
export class LimitedQueues {
  readonly #world: World;
  readonly #random: () => number;
  /** The admissions that each stopped queue had when it was stopped. */
  readonly #left = new Map<string, ReadonlySet<string>>();
  /** How many jobs each limited queue may run, or how many it ran when it was limited. */
  readonly #most = new Map<string, number>();
  /** The queue above each queue. Queues stay where they are. */
  readonly #parents = new Map<string, string | null>();

  constructor(world: World, random: () => number) {
    this.#world = world;
    this.#random = random;
  }

  /** Gives some queue a random policy and limit. Returns words for the trace. */
  async change(): Promise<string> {
    const queues = await this.#world.store.admin.listQueues();
    for (const { name, parent } of queues) this.#parents.set(name, parent);
    const queue = queues[Math.floor(this.#random() * queues.length)];
    assert.ok(queue);
    const policy = POLICIES[Math.floor(this.#random() * POLICIES.length)] ?? "NONE";
    const limit = this.#random() < 0.5 ? null : 1 + Math.floor(this.#random() * 3);
    await this.#set(queue.name, policy, limit);
    return `${queue.name} has the stop policy ${policy}, and may run ${limit ?? "all"} jobs`;
  }

  /** Resumes every queue. Limits stay. */
  async resumeAll(): Promise<void> {
    for (const { name, stopPolicy, maxRunningJobs } of await this.#world.store.admin.listQueues()) {
      if (stopPolicy !== "NONE") await this.#set(name, "NONE", maxRunningJobs);
    }
  }

  /** In a queue that is stopped, and below it, nothing was admitted since. No queue runs more jobs than it may. */
  check(jobs: readonly Job[]): void {
    for (const [queue, most] of this.#most) {
      const count = this.#runningIn(jobs, queue);
      assert.ok(count <= most, `queue ${queue} runs ${count} jobs of ${most}`);
    }
    for (const [queue, left] of this.#left) {
      for (const job of jobs.filter((one) => this.#isIn(one, queue))) {
        const known = admissionOf(job);
        if (known === null) continue;
        assert.ok(left.has(known), `${job.name} was admitted although queue ${queue} is stopped`);
      }
    }
  }

  async #set(name: string, stopPolicy: StopPolicy, maxRunningJobs: number | null): Promise<void> {
    const { store } = this.#world;
    const queue = await store.admin.getQueue(name);
    assert.ok(queue);
    const { kind } = await store.admin.updateQueue({ ...queue, stopPolicy, maxRunningJobs, version: 0 });
    assert.equal(kind, "done");
    const jobs = await this.#world.jobs();
    if (stopPolicy === "NONE") this.#left.delete(name);
    else this.#left.set(name, new Set(jobs.flatMap((job) => admissionOf(job) ?? [])));
    if (maxRunningJobs === null) this.#most.delete(name);
    else this.#most.set(name, Math.max(maxRunningJobs, this.#runningIn(jobs, name)));
  }

  #runningIn(jobs: readonly Job[], queue: string): number {
    return jobs.filter((job) => this.#isIn(job, queue) && liveAdmission(job) !== null).length;
  }

  /** True for a job of a queue or of one below it. */
  #isIn({ spec }: Job, queue: string): boolean {
    let at: string | null | undefined = spec.runPolicy.schedulingPolicy.queue;
    while (typeof at === "string" && at !== queue) at = this.#parents.get(at);
    return at === queue;
  }
}

function admissionOf(job: Job): string | null {
  const live = liveAdmission(job);
  return live === null ? null : `${job.uid} ${live.number}`;
}
