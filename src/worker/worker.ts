import { bucketOf } from "../core/job/bucket.ts";
import type { ReconcileConfig } from "../core/reconcile/draft.ts";
import { doublingMs } from "../runtime/doubling.ts";
import { KeyedQueue } from "../runtime/keyed-queue.ts";
import { JobMemory } from "./job-memory.ts";
import type { PluginEvents } from "./lacking.ts";
import type { WorkerPorts } from "./ports.ts";
import { QuotaMemory } from "./quota-memory.ts";
import { PluginCalls } from "./service.ts";
import { Share } from "./share.ts";
import { type StepContext, type StepResult, step } from "./step.ts";

/** How often the store is asked which jobs are due. */
const POLL_MS = 200;
/** How often it is asked how the buckets are shared out. */
const SHARE_MS = 500;
/** Jobs of buckets that have come are asked for in pages. */
const OPEN_PAGE = 1_000;
/** Wakes are collected for so long: a thousand pods of one gang change within moments. */
const COLLECT_MS = 20;
const DUE_PAGE = 500;
/** How often everything that is seen in clusters and not settled is looked at, whatever was heard of it. */
const SEEN_MS = 10_000;
/**
 * What could not be tried at all (clusters not listed yet, a store that is away) is tried again after this, doubling
 * up to the other.
 */
const PATIENCE = { firstMs: 200, longestMs: 2_000 };

export type WorkerOptions = {
  readonly config: ReconcileConfig;
  /** A plugin's call is cut off after so long; 30 s if absent. */
  readonly pluginCallMsMax?: number | undefined;
  /** Told of calls of plugins and of the tokens that they ask for; absent: nobody asks. */
  readonly pluginEvents?: PluginEvents;
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
   * Looks how the buckets are shared out, then steps every job that is due or woken, once; for tests and simulations.
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
  readonly #share: Share;
  /** How many steps run of each bucket. */
  readonly #busy = new Map<number, number>();
  /** Buckets that have come and whose jobs have not been asked for. */
  #taken: number[] = [];
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
  #sharedAtMs: number | null = null;
  #collecting = false;
  #seenAtMs: number | null = null;
  #signal: AbortSignal = new AbortController().signal;
  #until: { readonly sure: AbortSignal; readonly signal: AbortSignal } | null = null;

  constructor(ports: WorkerPorts, options: WorkerOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#context = {
      config: options.config,
      memory: new JobMemory(),
      quotas: new QuotaMemory(),
      calls: new PluginCalls(ports, {
        callMsMax: options.pluginCallMsMax,
        events: options.pluginEvents,
        onError: options.onError,
      }),
      leaseOf: (bucket) => this.#share.leaseOf(bucket),
      onLeaseLost: (bucket) => this.#share.lose(bucket),
    };
    this.#share = new Share({
      store: ports.store,
      member: ports.member,
      isBusy: (bucket) => this.#busy.has(bucket),
      onTaken: (buckets) => {
        this.#taken.push(...buckets);
        options.onBuckets?.(this.#share.buckets().length);
      },
      onLost: (buckets) => {
        this.#forget(buckets);
        options.onBuckets?.(this.#share.buckets().length);
      },
    });
    this.#queue = new KeyedQueue((jobUid) => this.#step(jobUid), {
      concurrency: options.concurrency ?? 32,
      onError: (error, jobUid) => this.#failed(error, jobUid),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    this.#until = null;
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.#poll();
        failures = 0;
      } catch (error) {
        failures += 1;
        this.#options.onError(error, "worker's poll");
      }
      await this.#ports.clock.sleep(failures === 0 ? POLL_MS : doublingMs(PATIENCE, failures - 1), signal);
    }
    await this.#queue.close();
  }

  async runOnce(): Promise<void> {
    this.#sharedAtMs = null;
    await this.#poll();
    this.#flush();
    await this.#queue.idle();
  }

  wake(jobUid: string): void {
    // Whoever takes its bucket looks at it anyway.
    if (!this.#share.holdsJob(jobUid)) return;
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
    const { clock } = this.#ports;
    const monotonicMs = clock.monotonicMs();
    await this.#lookAtShare(monotonicMs);
    await this.#offerOpen();
    for (const [jobUid, { atMs }] of this.#later) {
      if (atMs > monotonicMs) continue;
      this.#later.delete(jobUid);
      this.#queue.offer(jobUid);
    }
    await this.#offerDue(clock.nowMs());
    this.#offerSeen(monotonicMs);
  }

  async #lookAtShare(monotonicMs: number): Promise<void> {
    const isDue = this.#sharedAtMs === null || monotonicMs - this.#sharedAtMs >= SHARE_MS;
    if (!isDue && !this.#share.isStale()) return;
    await this.#share.look();
    this.#sharedAtMs = monotonicMs;
  }

  /** What happened to the jobs of a bucket before it came was not heard here: each that may have anything in a cluster is looked at. */
  async #offerOpen(): Promise<void> {
    if (this.#taken.length === 0) return;
    const buckets = this.#taken.filter((bucket) => this.#share.leaseOf(bucket) !== null);
    for (let after: string | null = null; buckets.length > 0; ) {
      const page: readonly string[] = await this.#ports.store.openJobs(buckets, { after, limit: OPEN_PAGE });
      for (const jobUid of page) this.#queue.wake(jobUid);
      after = page.at(-1) ?? null;
      if (page.length < OPEN_PAGE) break;
    }
    this.#taken = [];
    this.#seenAtMs = null;
  }

  /** What is remembered of jobs that are another worker's now. */
  #forget(buckets: ReadonlySet<number>): void {
    const isTheirs = (jobUid: string) => buckets.has(bucketOf(jobUid));
    this.#context.memory.forgetWhere(isTheirs);
    this.#context.calls.forget(buckets);
    for (const known of [this.#settled, this.#due, this.#woken, this.#later, this.#inVain]) {
      for (const jobUid of known.keys()) if (isTheirs(jobUid)) known.delete(jobUid);
    }
  }

  async #offerDue(nowMs: number): Promise<void> {
    const buckets = this.#share.buckets();
    if (buckets.length === 0) return;
    // What is held would otherwise fill the page and hide what comes after it.
    const limit = DUE_PAGE + this.#later.size;
    const due = await this.#ports.store.dueJobs(buckets, nowMs, limit);
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
    const seen = this.#ports.clusters.seenJobs().filter((jobUid) => this.#share.holdsJob(jobUid));
    this.#settled = new Set(seen.filter((jobUid) => this.#settled.has(jobUid)));
    for (const jobUid of seen) if (!this.#settled.has(jobUid)) this.#queue.offer(jobUid);
  }

  async #step(jobUid: string): Promise<void> {
    const due = this.#due.delete(jobUid);
    const sure = this.#share.signal();
    if (sure === null) return;
    // Marked before the step, so that what is heard during it unmarks.
    this.#settled.add(jobUid);
    const bucket = bucketOf(jobUid);
    this.#busy.set(bucket, (this.#busy.get(bucket) ?? 0) + 1);
    const run = () => step(this.#ports, this.#context, { jobUid, due }, this.#untilEither(sure));
    const { onStep } = this.#options;
    try {
      this.#ended(jobUid, await (onStep === undefined ? run() : this.#measured(jobUid, onStep, run)));
    } finally {
      const others = (this.#busy.get(bucket) ?? 1) - 1;
      if (others > 0) this.#busy.set(bucket, others);
      else this.#busy.delete(bucket);
    }
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

  /** Aborted when this worker is to stop, or may not be sure of its buckets any more. */
  #untilEither(sure: AbortSignal): AbortSignal {
    if (this.#until?.sure !== sure) this.#until = { sure, signal: AbortSignal.any([this.#signal, sure]) };
    return this.#until.signal;
  }

  #ended(jobUid: string, result: StepResult): void {
    if (result.kind !== "settled") this.#settled.delete(jobUid);
    if (result.kind === "notOurs") this.#sharedAtMs = null;
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
    this.#later.set(jobUid, { atMs: this.#ports.clock.monotonicMs() + doublingMs(PATIENCE, times - 1), holds: true });
  }
}
