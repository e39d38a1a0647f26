import type { Job } from "../core/job/job.ts";
import type { WholeSpec } from "../core/job/request/event-log.ts";
import { withTemplates } from "../core/job/spec.ts";
import { Semaphore } from "../runtime/semaphore.ts";
import { waitingKey } from "../runtime/served-call.ts";
import type { WatchStore } from "./ports.ts";

/** The bytes of jobs with templates that are kept, because other streams are about to send them too. */
const KEPT_BYTES_MAX = 16 * 1024 * 1024;
/** How many pages are read at a time, so that a crowd of streams leaves connections to others. */
const READS_MAX = 2;

/** The most jobs whose templates are read at a time. Their bytes are bounded too. */
const RECORDS = 50;

/** Fills templates into jobs of the log and of snapshots. Streams share what is read: each gets the same objects. */
export class WholeJobs {
  readonly #store: Pick<WatchStore, "wholeSpecs">;
  readonly #reads = new Semaphore(READS_MAX, waitingKey);
  /** Oldest first. Null: the page that was read did not reach the job. */
  readonly #kept = new Map<Job, Promise<Job | null>>();
  readonly #bytes = new Map<Job, number>();
  #bytesKept = 0;

  constructor(store: Pick<WatchStore, "wholeSpecs">) {
    this.#store = store;
  }

  /** Items with the templates of the jobs whose records still exist. */
  async *filled<Item extends { readonly job: Job }>(items: readonly Item[]): AsyncGenerator<Item, void, undefined> {
    for (let at = 0; at < items.length; ) {
      const page = await this.#first(items.slice(at, at + RECORDS).map(({ job }) => job));
      for (const [index, job] of page.entries()) yield { ...(items[at + index] as Item), job };
      at += page.length;
    }
  }

  /** The first of these jobs with their templates: as many as a page holds, and at least one. */
  async #first(jobs: readonly Job[]): Promise<readonly Job[]> {
    const [next] = jobs;
    if (next === undefined) return [];
    for (;;) {
      if (!this.#kept.has(next)) this.#read(jobs.filter((job) => !this.#kept.has(job)));
      const whole = await this.#firstKept(jobs);
      if (whole.length > 0) return whole;
    }
  }

  async #firstKept(jobs: readonly Job[]): Promise<readonly Job[]> {
    const whole: Job[] = [];
    for (const job of jobs) {
      const kept = (await this.#kept.get(job)) ?? null;
      if (kept === null) break;
      whole.push(kept);
    }
    return whole;
  }

  #read(jobs: readonly Job[]): void {
    const page = this.#reads.run(() => this.#store.wholeSpecs(jobs.map(({ uid }) => uid)));
    for (const job of jobs) {
      const filled = page.then(
        (specs) => this.#keep(job, specs.get(job.uid)),
        (error) => {
          this.#forget(job);
          throw error;
        },
      );
      // The streams that ask for the job hear of the error. Perhaps none does.
      filled.catch(() => undefined);
      this.#kept.set(job, filled);
    }
  }

  #keep(job: Job, found: WholeSpec | null | undefined): Job | null {
    if (found === undefined) {
      this.#forget(job);
      return null;
    }
    const bytes = found?.bytes ?? 0;
    this.#bytes.set(job, bytes);
    this.#bytesKept += bytes;
    for (const oldest of this.#bytes.keys()) {
      if (this.#bytesKept <= KEPT_BYTES_MAX || oldest === job) break;
      this.#forget(oldest);
    }
    return found === null ? job : { ...job, spec: withTemplates(job.spec, found.spec) };
  }

  #forget(job: Job): void {
    this.#kept.delete(job);
    this.#bytesKept -= this.#bytes.get(job) ?? 0;
    this.#bytes.delete(job);
  }
}
