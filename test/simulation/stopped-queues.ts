import assert from "node:assert/strict";
import { type Job, liveAdmission } from "../../src/core/job/job.ts";
import type { StopPolicy } from "../../src/core/plan/queue-stop.ts";
import type { World } from "./world.ts";

const POLICIES: readonly StopPolicy[] = ["NONE", "HOLD", "HOLD", "HOLD_AND_DRAIN", "HOLD_AND_DRAIN"];

/** Stops and resumes the queues of a world, and knows what may run in those that are stopped. */
export class StoppedQueues {
  readonly #world: World;
  readonly #random: () => number;
  /** The admissions that each stopped queue had when it was stopped. */
  readonly #left = new Map<string, ReadonlySet<string>>();

  constructor(world: World, random: () => number) {
    this.#world = world;
    this.#random = random;
  }

  /** Gives some queue a random policy. Returns words for the trace. */
  async change(): Promise<string> {
    const queues = await this.#world.store.admin.listQueues();
    const queue = queues[Math.floor(this.#random() * queues.length)];
    assert.ok(queue);
    const policy = POLICIES[Math.floor(this.#random() * POLICIES.length)] ?? "NONE";
    await this.#set(queue.name, policy);
    return `${queue.name} has the stop policy ${policy}`;
  }

  /** Resumes every queue. */
  async resumeAll(): Promise<void> {
    for (const { name, stopPolicy } of await this.#world.store.admin.listQueues()) {
      if (stopPolicy !== "NONE") await this.#set(name, "NONE");
    }
  }

  /** In a queue that is stopped, nothing was admitted since. */
  check(jobs: readonly Job[]): void {
    for (const job of jobs) {
      const { queue } = job.spec.runPolicy.schedulingPolicy;
      const known = admissionOf(job);
      const left = this.#left.get(queue);
      if (known === null || left === undefined) continue;
      assert.ok(left.has(known), `${job.name} was admitted although queue ${queue} is stopped`);
    }
  }

  async #set(name: string, stopPolicy: StopPolicy): Promise<void> {
    const { store } = this.#world;
    const queue = await store.admin.getQueue(name);
    assert.ok(queue);
    const { kind } = await store.admin.updateQueue({ ...queue, stopPolicy, version: 0 });
    assert.equal(kind, "done");
    if (stopPolicy === "NONE") this.#left.delete(name);
    else this.#left.set(name, new Set((await this.#world.jobs()).flatMap((job) => admissionOf(job) ?? [])));
  }
}

function admissionOf(job: Job): string | null {
  const live = liveAdmission(job);
  return live === null ? null : `${job.uid} ${live.number}`;
}
