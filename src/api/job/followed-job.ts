import type { Job } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/status.ts";
import type { Clock } from "../../runtime/clock.ts";
import { linkedController } from "../../runtime/linked-controller.ts";
import type { JobWatch } from "../ports.ts";

/** Wait for at most this long: no watch reports a container that restarts within its pod. */
const RECHECK_MS = 1000;

/** The newest record of one job, kept current by a watch. */
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

  /** True once the job has ended or its record is gone: no container starts any more. */
  get over(): boolean {
    return this.#gone || isTerminal(this.#job.status);
  }

  /** Follows the job until `signal` is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#follow(signal);
      } catch {
        // Logs can be read without a watch. The next watch reports all changes.
      }
      await this.#clock.sleep(RECHECK_MS, signal);
    }
  }

  /** Waits for a change of the job, or for RECHECK_MS. */
  async wait(signal: AbortSignal): Promise<void> {
    using woken = linkedController(signal, this.#changed.signal);
    await this.#clock.sleep(RECHECK_MS, woken.signal);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { namespace, name } = this.#job;
    const filter = { namespace, names: [name], kinds: [], phases: [], queue: "", cluster: null, labels: {} };
    let found = false;
    for await (const entry of this.#watch.watch({ filter, cursor: "", full: false }, signal)) {
      const isOurs = "job" in entry && entry.job.uid === this.#job.uid;
      if (isOurs) this.#take(entry);
      found ||= isOurs;
      // The watch has sent every existing job by now.
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
