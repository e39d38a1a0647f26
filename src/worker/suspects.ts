/**
 * The jobs that may have ended workers. It serves users whose jobs must go on although another one stops every worker
 * that steps it: see `core/blame`.
 */
import type { StepNote } from "../core/blame/step-note.ts";
import { type BucketLease, bucketOf } from "../core/job/bucket.ts";
import { append } from "../runtime/lists.ts";
import type { BlameStore } from "./ports.ts";

/** The page size when reading the jobs of buckets whose jobs are stepped one at a time. */
const PAGE = 1_000;
/** How long after a step that blocked the watchdog's note about it is awaited. */
const AWAIT_NOTE_MS = 10_000;

type SuspectsOptions = {
  /** Omitted: no job is suspected. */
  readonly store: BlameStore | undefined;
  /** The name under which this worker holds its buckets. Null: it is not sure of them. */
  readonly worker: () => string | null;
  /** A step whose own code blocks this worker for longer counts against its job. */
  readonly blockedMsMax: number;
  /** Called with how many jobs are still to be stepped alone. */
  readonly onSuspects: ((left: number) => void) | undefined;
};

export class Suspects {
  readonly #options: SuspectsOptions;
  /** Buckets that were taken, and of which nothing was read. True: their jobs are stepped one at a time. */
  readonly #unread = new Map<number, boolean>();
  /** Jobs that are to have one step alone. */
  readonly #alone = new Set<string>();
  /** How many of them are in each bucket. 0: all had their step, and the store does not know that. */
  readonly #left = new Map<number, number>();
  /** The notes about each job. */
  readonly #notes = new Map<string, readonly StepNote[]>();
  /** Buckets of jobs that have blocked this worker, and until when notes about them are read again. */
  readonly #awaited = new Map<number, number>();

  constructor(options: SuspectsOptions) {
    this.#options = options;
  }

  /** Notes that these buckets were taken. Their jobs are not stepped before `read`. */
  taken(leases: readonly BucketLease[]): void {
    if (this.#options.store === undefined) return;
    for (const { bucket, alone = false } of leases) this.#unread.set(bucket, alone);
  }

  /** True once the notes about jobs of a bucket are known. */
  knows(bucket: number): boolean {
    return !this.#unread.has(bucket);
  }

  isAlone(jobUid: string): boolean {
    return this.#alone.size > 0 && this.#alone.has(jobUid);
  }

  notesOf(jobUid: string): readonly StepNote[] {
    return this.#notes.get(jobUid) ?? [];
  }

  /** Notes how long the code of a job's step ran. If that was too long, the watchdog's note about it is awaited. */
  ran(jobUid: string, tookMs: number, monotonicMs: number): void {
    const { store, blockedMsMax } = this.#options;
    if (store !== undefined && tookMs > blockedMsMax) this.#awaited.set(bucketOf(jobUid), monotonicMs + AWAIT_NOTE_MS);
  }

  /**
   * Reads the notes about jobs of buckets that were taken, and which jobs are to be stepped alone. Returns the latter
   * in the order of their steps: a job with a note is last, so that it ends no worker before the others had their step.
   */
  async read(monotonicMs: number): Promise<readonly string[]> {
    const { store } = this.#options;
    if (store === undefined) return [];
    await this.#clear(store);
    const unread = [...this.#unread];
    for (const [bucket, untilMs] of this.#awaited) if (untilMs < monotonicMs) this.#awaited.delete(bucket);
    const buckets = [...new Set([...unread.map(([bucket]) => bucket), ...this.#awaited.keys()])];
    if (buckets.length === 0) return [];
    const notes = Map.groupBy(await store.notesIn(buckets), ({ jobUid }) => jobUid);
    for (const [jobUid, about] of notes) this.#notes.set(jobUid, about);
    const suspects = await this.#steppedIn(
      store,
      unread.flatMap(([bucket, alone]) => (alone ? [bucket] : [])),
    );
    for (const [bucket, alone] of unread) {
      if (this.#unread.get(bucket) === alone) this.#unread.delete(bucket);
      if (alone) this.#left.set(bucket, 0);
    }
    for (const jobUid of suspects) this.#suspect(jobUid);
    this.#tell();
    return suspects.toSorted((a, b) => Number(notes.has(a)) - Number(notes.has(b)));
  }

  /** Notes durably that the next step is that of this job. */
  async before(jobUid: string): Promise<void> {
    const worker = this.#options.worker();
    if (worker !== null) await this.#options.store?.noteAlone(worker, jobUid);
  }

  /** Notes that the job had its step alone. */
  stepped(jobUid: string): void {
    if (!this.#alone.delete(jobUid)) return;
    const bucket = bucketOf(jobUid);
    this.#left.set(bucket, Math.max(0, (this.#left.get(bucket) ?? 1) - 1));
    this.#tell();
  }

  /** Forgets what was noted about a job that is set aside now. */
  judged(jobUid: string): void {
    this.#notes.delete(jobUid);
  }

  /** Forgets jobs of buckets that others hold now. */
  forget(buckets: ReadonlySet<number>): void {
    for (const known of [this.#unread, this.#left, this.#awaited]) for (const one of buckets) known.delete(one);
    for (const known of [this.#alone, this.#notes]) {
      for (const jobUid of known.keys()) if (buckets.has(bucketOf(jobUid))) known.delete(jobUid);
    }
    this.#tell();
  }

  async #steppedIn(store: BlameStore, buckets: readonly number[]): Promise<readonly string[]> {
    const found: string[] = [];
    for (let after: string | null = null; buckets.length > 0; ) {
      const page: readonly string[] = await store.steppedJobs(buckets, { after, limit: PAGE });
      append(found, page);
      after = page.at(-1) ?? null;
      if (page.length < PAGE) break;
    }
    return found;
  }

  #suspect(jobUid: string): void {
    if (this.#alone.has(jobUid)) return;
    this.#alone.add(jobUid);
    const bucket = bucketOf(jobUid);
    this.#left.set(bucket, (this.#left.get(bucket) ?? 0) + 1);
  }

  /** Tells the store about buckets all of whose jobs had their step. */
  async #clear(store: BlameStore): Promise<void> {
    const cleared = [...this.#left].flatMap(([bucket, left]) => (left === 0 ? [bucket] : []));
    const worker = this.#options.worker();
    if (cleared.length === 0 || worker === null) return;
    await store.endAlone(worker, cleared);
    for (const bucket of cleared) this.#left.delete(bucket);
    if (this.#left.size === 0) await store.forgetAlone(worker);
  }

  #tell(): void {
    this.#options.onSuspects?.(this.#alone.size);
  }
}
