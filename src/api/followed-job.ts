import type { Job } from "../core/job/job.ts";
import { isTerminal } from "../core/job/status.ts";
import type { Clock } from "../runtime/clock.ts";
import type { JobWatch } from "./ports.ts";

/** What no watch tells, such as a container that starts again in its pod, is looked for so often. */
const RECHECK_MS = 1000;

/** One job while it is followed: its newest record, and whether it is over. */
export class FollowedJob {
  readonly #watch: JobWatch;
  readonly #clock: Clock;
  #job: Job;
  #gone = false;
  #changed = new AbortController();

  constructor(ports: { readonly watch: JobWatch; readonly clock: Clock }, job: Job) {
    this.#watch = ports.watch;
    this.#clock = ports.clock;
    this.#job = job;
  }

  get job(): Job {
    return this.#job;
  }

  /** True once the job has ended or its record is gone: nothing of it will be started any more. */
  get over(): boolean {
    return this.#gone || isTerminal(this.#job.status);
  }

  /** Keeps up with the job until `signal` is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#hear(signal);
      } catch {
        // A log needs no watch to go on: what changes is then seen by the next one.
      }
      await this.#clock.sleep(RECHECK_MS, signal);
    }
  }

  /** Waits for a change of the job, or a moment. */
  async wait(signal: AbortSignal): Promise<void> {
    await this.#clock.sleep(RECHECK_MS, AbortSignal.any([signal, this.#changed.signal]));
  }

  async #hear(signal: AbortSignal): Promise<void> {
    const { namespace, name } = this.#job;
    const filter = { namespace, names: [name], kinds: [], phases: [], queue: "", cluster: "", labels: {} };
    let found = false;
    for await (const entry of this.#watch.watch({ filter, cursor: "", full: true }, signal)) {
      const isOurs = "job" in entry && entry.job.uid === this.#job.uid;
      if (isOurs) this.#take(entry);
      found ||= isOurs;
      // What was there has been told by then.
      if (entry.type === "BOOKMARK" && !found) this.#gone = true;
      this.#changed.abort();
      this.#changed = new AbortController();
    }
  }

  #take({ type, job }: { readonly type: string; readonly job: Job }): void {
    if (type === "DELETED") this.#gone = true;
    else this.#job = job;
  }
}
