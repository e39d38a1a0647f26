import type { ReconcileConfig } from "../core/reconcile/draft.ts";
import { KeyedQueue } from "../runtime/keyed-queue.ts";
import { JobMemory } from "./job-memory.ts";
import type { BucketLease, WorkerPorts } from "./ports.ts";
import { type StepContext, type StepResult, step } from "./step.ts";

/** How often the store is asked which jobs are due. */
const POLL_MS = 200;
/** Wakes are collected for so long: a thousand pods of one gang change within moments. */
const COLLECT_MS = 20;
const DUE_PAGE = 500;
/** How often everything that is seen in clusters and not settled is looked at, whatever was heard of it. */
const SEEN_MS = 10_000;
/**
 * What could not be tried at all (clusters not listed yet, a store that is away) is tried again after this, doubling
 * up to the other.
 */
const PATIENCE_MS_MIN = 200;
const PATIENCE_MS_MAX = 2_000;

export type WorkerOptions = {
  /** This process's name in the store. */
  readonly worker: string;
  readonly config: ReconcileConfig;
  /** How many jobs are stepped at a time; 32 if absent. */
  readonly concurrency?: number;
  /** Told of what goes wrong; nothing stops for it. */
  readonly onError: (error: unknown, what: string) => void;
  /** Told of every step that ended; absent: nobody asks, and nothing is measured. */
  readonly onStep?: (facts: StepFacts) => void;
  /** Told how many buckets are held whenever that has changed. */
  readonly onBuckets?: (held: number) => void;
};

export type StepFacts = {
  readonly result: StepResult["kind"] | "failed";
  readonly tookMs: number;
  /** From the first wake, or the poll that found it due, to the beginning of the step. */
  readonly lagMs: number;
};

export type Worker = {
  /** Works until the signal is aborted; resolves once every step has ended, promptly. Never rejects. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  /**
   * Takes buckets if there are none yet, then steps every job that is due or woken, once; for tests and simulations.
   */
  readonly runOnce: () => Promise<void>;
  /** Tells it that something of a job has changed. A hint. */
  readonly wake: (jobUid: string) => void;
};

/** Keeps jobs going: each step observes, decides, records and acts, one at a time for each job. */
export function createWorker(ports: WorkerPorts, options: WorkerOptions): Worker {
  const loop = new WorkerLoop(ports, options);
  return {
    run: (signal) => loop.run(signal),
    runOnce: () => loop.runOnce(),
    wake: (jobUid) => loop.wake(jobUid),
  };
}

class WorkerLoop {
  readonly #ports: WorkerPorts;
  readonly #options: WorkerOptions;
  readonly #context: StepContext;
  readonly #queue: KeyedQueue;
  readonly #leases = new Map<number, BucketLease>();
  readonly #woken = new Set<string>();
  /** Jobs whose recorded time has come. */
  readonly #due = new Set<string>();
  /**
   * Looks that this worker has promised itself, on the monotonic clock; `holds` keeps the due job from being looked
   * at before.
   */
  readonly #later = new Map<string, { readonly atMs: number; readonly holds: boolean }>();
  /** How often in a row a job could not be stepped at all. */
  readonly #inVain = new Map<string, number>();
  /** Jobs with nothing left to do until something is heard of them. */
  #settled = new Set<string>();
  /** When each job that waits for a step was first asked for, on the monotonic clock; kept only where steps are told of. */
  readonly #askedAtMs = new Map<string, number>();
  #taken = false;
  #collecting = false;
  #seenAtMs: number | null = null;
  #signal: AbortSignal = new AbortController().signal;

  constructor(ports: WorkerPorts, options: WorkerOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#context = {
      config: options.config,
      memory: new JobMemory(),
      leaseOf: (bucket) => this.#leases.get(bucket) ?? null,
      onLeaseLost: (bucket) => {
        this.#leases.delete(bucket);
        options.onBuckets?.(this.#leases.size);
      },
    };
    this.#queue = new KeyedQueue((jobUid) => this.#step(jobUid), {
      concurrency: options.concurrency ?? 32,
      onError: (error, jobUid) => this.#failed(error, jobUid),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.#poll();
        failures = 0;
      } catch (error) {
        failures += 1;
        this.#options.onError(error, "worker's poll");
      }
      await this.#ports.clock.sleep(failures === 0 ? POLL_MS : patienceMs(failures), signal);
    }
    await this.#queue.close();
  }

  async runOnce(): Promise<void> {
    await this.#poll();
    this.#flush();
    await this.#queue.idle();
  }

  wake(jobUid: string): void {
    this.#settled.delete(jobUid);
    this.#woken.add(jobUid);
    this.#asked(jobUid);
    if (this.#collecting) return;
    this.#collecting = true;
    void this.#ports.clock.sleep(COLLECT_MS, this.#signal).then(() => {
      this.#collecting = false;
      this.#flush();
    });
  }

  #flush(): void {
    for (const jobUid of this.#woken) this.#queue.wake(jobUid);
    this.#woken.clear();
  }

  async #poll(): Promise<void> {
    const { store, clock } = this.#ports;
    if (!this.#taken) {
      for (const lease of await store.takeBuckets(this.#options.worker)) this.#leases.set(lease.bucket, lease);
      this.#taken = true;
      this.#options.onBuckets?.(this.#leases.size);
    }
    const monotonicMs = clock.monotonicMs();
    for (const [jobUid, { atMs }] of this.#later) {
      if (atMs > monotonicMs) continue;
      this.#later.delete(jobUid);
      this.#queue.offer(jobUid);
    }
    await this.#offerDue(clock.nowMs());
    this.#offerSeen(monotonicMs);
  }

  async #offerDue(nowMs: number): Promise<void> {
    if (this.#leases.size === 0) return;
    // What is held would otherwise fill the page and hide what comes after it.
    const limit = DUE_PAGE + this.#later.size;
    const due = await this.#ports.store.dueJobs([...this.#leases.keys()], nowMs, limit);
    for (const jobUid of due) {
      if (this.#later.get(jobUid)?.holds === true) continue;
      // Known before the step begins, which may be at once; one that runs already moves the time itself.
      this.#due.add(jobUid);
      const first = this.#asked(jobUid);
      if (this.#queue.offer(jobUid)) continue;
      this.#due.delete(jobUid);
      if (first) this.#askedAtMs.delete(jobUid);
    }
  }

  #offerSeen(monotonicMs: number): void {
    if (this.#seenAtMs !== null && monotonicMs - this.#seenAtMs < SEEN_MS) return;
    this.#seenAtMs = monotonicMs;
    const seen = this.#ports.clusters.seenJobs();
    this.#settled = new Set(seen.filter((jobUid) => this.#settled.has(jobUid)));
    for (const jobUid of seen) if (!this.#settled.has(jobUid)) this.#queue.offer(jobUid);
  }

  async #step(jobUid: string): Promise<void> {
    const due = this.#due.delete(jobUid);
    // Marked before the step, so that what is heard during it unmarks.
    this.#settled.add(jobUid);
    const run = () => step(this.#ports, this.#context, { jobUid, due }, this.#signal);
    const { onStep } = this.#options;
    this.#ended(jobUid, await (onStep === undefined ? run() : this.#measured(jobUid, onStep, run)));
  }

  async #measured(
    jobUid: string,
    onStep: NonNullable<WorkerOptions["onStep"]>,
    run: () => Promise<StepResult>,
  ): Promise<StepResult> {
    const startedMs = this.#ports.clock.monotonicMs();
    const lagMs = startedMs - (this.#askedAtMs.get(jobUid) ?? startedMs);
    this.#askedAtMs.delete(jobUid);
    let kind: StepFacts["result"] = "failed";
    try {
      const result = await run();
      kind = result.kind;
      return result;
    } finally {
      onStep({ result: kind, tookMs: this.#ports.clock.monotonicMs() - startedMs, lagMs });
    }
  }

  /** Remembers when a step of a job was asked for; true where nobody has before. */
  #asked(jobUid: string): boolean {
    if (this.#options.onStep === undefined || this.#askedAtMs.has(jobUid)) return false;
    this.#askedAtMs.set(jobUid, this.#ports.clock.monotonicMs());
    return true;
  }

  #ended(jobUid: string, result: StepResult): void {
    if (result.kind !== "settled") this.#settled.delete(jobUid);
    if (result.kind === "unseen") this.#tryLater(jobUid);
    else this.#inVain.delete(jobUid);
    if (result.kind === "settled") this.#later.delete(jobUid);
    if (result.kind === "again") {
      const atMs = this.#ports.clock.monotonicMs() + result.afterMs;
      this.#later.set(jobUid, { atMs, holds: false });
    }
  }

  #failed(error: unknown, jobUid: string): void {
    this.#options.onError(error, `step of job ${jobUid}`);
    this.#settled.delete(jobUid);
    this.#tryLater(jobUid);
  }

  #tryLater(jobUid: string): void {
    const times = (this.#inVain.get(jobUid) ?? 0) + 1;
    this.#inVain.set(jobUid, times);
    this.#later.set(jobUid, { atMs: this.#ports.clock.monotonicMs() + patienceMs(times), holds: true });
  }
}

function patienceMs(times: number): number {
  return Math.min(PATIENCE_MS_MAX, PATIENCE_MS_MIN * 2 ** Math.min(times - 1, 10));
}
