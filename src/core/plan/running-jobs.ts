import type { PlanQueue } from "./snapshot.ts";

/** The reason of a job that waits because its queue runs as many jobs as it may. */
export const QUEUE_FULL = "QueueFull";

type Limited = Pick<PlanQueue, "name" | "parent" | "maxRunningJobs">;

/** How many jobs are admitted in each queue and in those below it. Counts nothing if no queue has a limit. */
export class RunningJobs {
  readonly #queues: ReadonlyMap<string, Limited>;
  readonly #counts = new Map<string, number>();
  readonly #isLimited: boolean;

  constructor(queues: ReadonlyMap<string, Limited>) {
    this.#queues = queues;
    this.#isLimited = [...queues.values()].some(({ maxRunningJobs = null }) => maxRunningJobs !== null);
  }

  add(queue: string, jobs: number): void {
    if (!this.#isLimited) return;
    for (const { name } of this.#path(queue)) this.#counts.set(name, this.of(name) + jobs);
  }

  of(queue: string): number {
    return this.#counts.get(queue) ?? 0;
  }

  /** The nearest queue on the path to the root that may not run one more job. Null: there is none. */
  fullAt(queue: string): string | null {
    if (!this.#isLimited) return null;
    for (const { name, maxRunningJobs = null } of this.#path(queue)) {
      if (maxRunningJobs !== null && this.of(name) >= maxRunningJobs) return name;
    }
    return null;
  }

  #path(queue: string): readonly Limited[] {
    const path: Limited[] = [];
    let at = this.#queues.get(queue);
    // A tree that changes meanwhile may be read as a circle.
    for (; at !== undefined && path.length < this.#queues.size; at = this.#queues.get(at.parent ?? "")) path.push(at);
    return path;
  }
}

/** Why jobs of a queue wait: `queue nlp runs 3 jobs, and may run 3 at most`. */
export function fullWords(full: string, of: { readonly running: number; readonly limit: number }): string {
  return `queue ${full} runs ${of.running} ${of.running === 1 ? "job" : "jobs"}, and may run ${of.limit} at most`;
}
