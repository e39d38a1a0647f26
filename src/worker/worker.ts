/**
 * The worker's loop: it takes its buckets, and steps every job that is due or that an event has woken. It serves users
 * whose jobs must go on without anybody asking, also after a crash or a hand-over.
 */

import { bucketOf } from "../core/job/bucket.ts";
import type { ReconcileConfig } from "../core/reconcile/decision-draft.ts";
import { doublingMs } from "../runtime/doubling.ts";
import { KeyedQueue } from "../runtime/keyed-queue.ts";
import { linkedController } from "../runtime/linked-controller.ts";
import { append } from "../runtime/lists.ts";
import { ArrivedPods, type PodArrival } from "./arrived-pods.ts";
import { BucketShare } from "./bucket-share.ts";
import { FailureLogs } from "./failure-logs.ts";
import { JobMemory } from "./job-memory.ts";
import { PluginCalls } from "./plugin-calls.ts";
import type { WorkerPorts } from "./ports.ts";
import { QuotaMemory } from "./quota-memory.ts";
import { SeenTimes } from "./seen-times.ts";
import { SlowPlugins } from "./slow-plugins.ts";
import { type StepContext, type StepFacts, type StepResult, step } from "./step.ts";
import { StepSchedule, TRY_AGAIN } from "./step-schedule.ts";
import { Suspects } from "./suspects.ts";
import type { PluginEvents } from "./token-shortage.ts";

/** How often the worker looks whether anything is to be done, and asks the store which jobs are due. */
const POLL_MS = 200;
/** A worker that has stepped no job for so long asks the store less often. Hints still wake it at once. */
const QUIET_AFTER_MS = 2_000;
const QUIET_POLL_MS = 1_000;
/** How often the worker asks the store how the buckets are divided. */
const SHARE_MS = 500;
/** The page size when reading the jobs of buckets that were just taken. */
const OPEN_PAGE = 1_000;
/** How long wakes are collected: a thousand pods of one gang change within moments. */
const COLLECT_MS = 20;
const DUE_PAGE = 500;
/** How often all jobs with objects in clusters that are not settled are looked at, without any event. */
const SEEN_MS = 10_000;

export type WorkerOptions = {
  readonly config: ReconcileConfig;
  /** The longest time of a plugin call, after which it is cut off. Omitted: 30 s. */
  readonly pluginCallMsMax?: number | undefined;
  /** Called with plugin calls and the tokens that they request. Omitted: not reported. */
  readonly pluginEvents?: PluginEvents;
  /** How many steps run at a time. Omitted: 128. Those that wait for a cluster's answers do not count. */
  readonly concurrency?: number;
  /** Called with errors. The worker goes on. */
  readonly onError: (error: unknown, what: string) => void;
  /** Called after every step. Omitted: steps are not measured. */
  readonly onStep?: (facts: StepFacts) => void;
  /** Called with the number of buckets that are held, whenever it changes, and how many were taken or have left. */
  readonly onBuckets?: (held: number, moved: { readonly change: "taken" | "left"; readonly buckets: number }) => void;
  /** Called with each pod that comes to a node after it was made for a planned one. Omitted: they are not counted. */
  readonly onPodPlaced?: (placed: PodArrival) => void;
  /** A step whose own code blocks this worker for longer counts against its job. Omitted: none does. */
  readonly blockedMsMax?: number;
  /** Called with how many jobs are still to be stepped one at a time, after two workers have ended. */
  readonly onSuspects?: (left: number) => void;
  /** Called with a job that was set aside. */
  readonly onSetAside?: StepContext["onSetAside"];
};

export type Worker = {
  /** Works until the signal is aborted. Resolves promptly, once every running step has ended. Never rejects. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  /**
   * Refreshes the buckets, then steps every job that is due or woken once. For tests and simulations.
   */
  readonly runOnce: () => Promise<void>;
  /** A hint that a job or an object of it has changed. */
  readonly wake: (jobUid: string) => void;
};

/** For each step that may run, so many more may wait for answers of clusters: a bound of the memory that they take. */
const ACTING_PER_PLACE = 3;

/** Moves jobs forward. Each step observes, decides, records and acts; the steps of one job run one at a time. */
export function createWorker(ports: WorkerPorts, options: WorkerOptions): Worker {
  const loop = new WorkerLoop(ports, options);
  return { run: (signal) => loop.run(signal), runOnce: () => loop.runOnce(), wake: (jobUid) => loop.wake(jobUid) };
}

class WorkerLoop {
  readonly #ports: WorkerPorts;
  readonly #options: WorkerOptions;
  readonly #context: StepContext;
  readonly #queue: KeyedQueue;
  /** Steps jobs that may have ended workers, one at a time. */
  readonly #aloneQueue: KeyedQueue;
  readonly #suspects: Suspects;
  readonly #share: BucketShare;
  readonly #schedule: StepSchedule;
  /** Buckets that were taken and whose jobs have not been read. */
  #taken: number[] = [];
  #sharedAtMs: number | null = null;
  /** When a step last began, and when the store was last asked for due jobs. */
  #steppedAtMs = Number.NEGATIVE_INFINITY;
  #askedDueAtMs = Number.NEGATIVE_INFINITY;
  #collecting = false;
  #seenAtMs: number | null = null;
  #signal: AbortSignal = new AbortController().signal;
  #until: { readonly sure: AbortSignal; readonly signal: AbortSignal } | null = null;

  constructor(ports: WorkerPorts, options: WorkerOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#schedule = new StepSchedule(ports.clock);
    this.#suspects = new Suspects({
      store: ports.blame,
      worker: () => ports.member.term()?.name ?? null,
      blockedMsMax: options.blockedMsMax ?? Number.POSITIVE_INFINITY,
      onSuspects: options.onSuspects,
    });
    const slow = new SlowPlugins();
    this.#context = {
      config: options.config,
      memory: new JobMemory(),
      seen: new SeenTimes(),
      placed: new ArrivedPods((placed) => options.onPodPlaced?.(placed)),
      quotas: new QuotaMemory(),
      calls: new PluginCalls(ports, {
        kinds: options.config.kinds,
        callMsMax: options.pluginCallMsMax,
        events: options.pluginEvents,
        slow,
        onError: options.onError,
      }),
      failureLogs:
        ports.failureLogs === undefined
          ? null
          : new FailureLogs({ ...ports.failureLogs, clock: ports.clock }, (error) =>
              options.onError(error, "reads of failure logs"),
            ),
      leaseOf: (bucket) => this.#share.leaseOf(bucket),
      onLeaseLost: (bucket) => this.#share.lose(bucket),
      suspects: this.#suspects,
      onActing: (jobUid) => this.#queue.leave(jobUid),
      slow,
      onRan: (jobUid, tookMs) => this.#suspects.ran(jobUid, tookMs, ports.clock.monotonicMs()),
      onSetAside: (job, made) => options.onSetAside?.(job, made),
    };
    this.#share = new BucketShare({
      store: ports.store,
      member: ports.member,
      isBusy: (bucket) => this.#schedule.isBusy(bucket),
      onTaken: (buckets) => {
        append(this.#taken, buckets);
        this.#suspects.taken(buckets.flatMap((bucket) => this.#share.leaseOf(bucket) ?? []));
        options.onBuckets?.(this.#share.buckets().length, { change: "taken", buckets: buckets.length });
      },
      onLost: (buckets) => {
        this.#forget(buckets);
        options.onBuckets?.(this.#share.buckets().length, { change: "left", buckets: buckets.size });
      },
    });
    const onError = (error: unknown, jobUid: string) => this.#failed(error, jobUid);
    const { concurrency = 128 } = options;
    const places = { concurrency, leftMax: concurrency * ACTING_PER_PLACE, onError };
    this.#queue = new KeyedQueue((jobUid) => this.#step(jobUid), places);
    this.#aloneQueue = new KeyedQueue((jobUid) => this.#stepAlone(jobUid), { concurrency: 1, onError });
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
      await this.#ports.clock.sleep(failures === 0 ? POLL_MS : doublingMs(TRY_AGAIN, failures - 1), signal);
    }
    await Promise.all([this.#queue.close(), this.#aloneQueue.close()]);
  }

  async runOnce(): Promise<void> {
    this.#sharedAtMs = null;
    this.#askedDueAtMs = Number.NEGATIVE_INFINITY;
    await this.#poll();
    this.#flush();
    await this.#aloneQueue.idle();
    await this.#queue.idle();
  }

  wake(jobUid: string): void {
    // The worker that takes the job's bucket looks at it anyway.
    if (!this.#share.holdsJob(jobUid)) return;
    this.#schedule.wake(jobUid);
    if (this.#collecting) return;
    this.#collecting = true;
    void this.#ports.clock.sleep(COLLECT_MS, this.#signal).then(() => {
      this.#collecting = false;
      this.#flush();
    });
  }

  #flush(): void {
    for (const jobUid of this.#schedule.takeWoken()) this.#queueOf(jobUid).wake(jobUid);
  }

  #queueOf(jobUid: string): KeyedQueue {
    return this.#suspects.isAlone(jobUid) ? this.#aloneQueue : this.#queue;
  }

  async #poll(): Promise<void> {
    const { clock } = this.#ports;
    const monotonicMs = clock.monotonicMs();
    await this.#refreshShare(monotonicMs);
    for (const jobUid of await this.#suspects.read(monotonicMs)) this.#aloneQueue.wake(jobUid);
    await this.#offerOpen();
    for (const jobUid of this.#schedule.takePlanned()) this.#queueOf(jobUid).offer(jobUid);
    if (this.#asksDue(monotonicMs)) await this.#offerDue(clock.nowMs());
    this.#offerSeen(monotonicMs);
  }

  #asksDue(monotonicMs: number): boolean {
    const isQuiet = monotonicMs - this.#steppedAtMs >= QUIET_AFTER_MS;
    if (isQuiet && monotonicMs - this.#askedDueAtMs < QUIET_POLL_MS) return false;
    this.#askedDueAtMs = monotonicMs;
    return true;
  }

  async #refreshShare(monotonicMs: number): Promise<void> {
    const isDue = this.#sharedAtMs === null || monotonicMs - this.#sharedAtMs >= SHARE_MS;
    if (!isDue && !this.#share.isStale()) return;
    await this.#share.refresh();
    this.#sharedAtMs = monotonicMs;
  }

  /**
   * Queues a step for each job of newly taken buckets that may have objects in a cluster: this worker has missed their
   * events.
   */
  async #offerOpen(): Promise<void> {
    if (this.#taken.length === 0) return;
    const buckets = this.#taken.filter((bucket) => this.#share.leaseOf(bucket) !== null);
    for (let after: string | null = null; buckets.length > 0; ) {
      const page: readonly string[] = await this.#ports.store.openJobs(buckets, { after, limit: OPEN_PAGE });
      for (const jobUid of page) this.#queueOf(jobUid).wake(jobUid);
      after = page.at(-1) ?? null;
      if (page.length < OPEN_PAGE) break;
    }
    this.#taken = [];
    this.#seenAtMs = null;
  }

  /** Forgets jobs that belong to another worker now. */
  #forget(buckets: ReadonlySet<number>): void {
    const isTheirs = (jobUid: string) => buckets.has(bucketOf(jobUid));
    this.#context.memory.forgetWhere(isTheirs);
    this.#context.placed.forgetWhere(isTheirs);
    this.#context.calls.forget(buckets);
    this.#suspects.forget(buckets);
    this.#schedule.forgetWhere(isTheirs);
  }

  async #offerDue(nowMs: number): Promise<void> {
    const buckets = this.#share.buckets();
    if (buckets.length === 0) return;
    // Held jobs would otherwise fill the page and hide the jobs after them.
    const limit = DUE_PAGE + this.#schedule.planned;
    const due = await this.#ports.store.dueJobs(buckets, nowMs, limit);
    for (const jobUid of due) {
      if (!this.#schedule.isHeld(jobUid)) this.#schedule.due(jobUid, () => this.#queueOf(jobUid).offer(jobUid));
    }
  }

  #offerSeen(monotonicMs: number): void {
    if (this.#seenAtMs !== null && monotonicMs - this.#seenAtMs < SEEN_MS) return;
    this.#seenAtMs = monotonicMs;
    const seen = this.#ports.clusters.seenJobs().filter((jobUid) => this.#share.holdsJob(jobUid));
    this.#schedule.keepSettled(new Set(seen));
    for (const jobUid of seen) if (!this.#schedule.isSettled(jobUid)) this.#queueOf(jobUid).offer(jobUid);
  }

  /** Steps a job whose bucket two workers in a row have not survived, and notes that before. */
  async #stepAlone(jobUid: string): Promise<void> {
    if (!this.#suspects.isAlone(jobUid)) return this.#queue.wake(jobUid);
    if (this.#share.signal() === null) return;
    await this.#suspects.before(jobUid);
    const kind = await this.#run(jobUid);
    if (kind !== null && kind !== "unseen") this.#suspects.stepped(jobUid);
  }

  async #step(jobUid: string): Promise<void> {
    // Its bucket was taken after it was queued: what is noted about it comes first.
    if (!this.#suspects.knows(bucketOf(jobUid))) this.#schedule.postpone(jobUid);
    else if (this.#suspects.isAlone(jobUid)) this.#aloneQueue.wake(jobUid);
    else await this.#run(jobUid);
  }

  /** Returns how the step ended. Null: it did not begin. */
  async #run(jobUid: string): Promise<StepResult["kind"] | null> {
    const due = this.#schedule.takeDue(jobUid);
    const sure = this.#share.signal();
    if (sure === null) return null;
    if (this.#schedule.isRunning(jobUid)) {
      this.#schedule.postpone(jobUid);
      return null;
    }
    this.#steppedAtMs = this.#ports.clock.monotonicMs();
    const lagMs = this.#schedule.begin(jobUid);
    const run = () => step(this.#ports, this.#context, { jobUid, due }, this.#untilEither(sure));
    const { onStep } = this.#options;
    try {
      const result = await (onStep === undefined ? run() : this.#measured(lagMs, onStep, run));
      this.#ended(jobUid, result);
      return result.kind;
    } finally {
      this.#schedule.end(jobUid);
    }
  }

  async #measured(
    lagMs: number,
    onStep: NonNullable<WorkerOptions["onStep"]>,
    run: () => Promise<StepResult>,
  ): Promise<StepResult> {
    const startedMs = this.#ports.clock.monotonicMs();
    let kind: StepFacts["result"] = "failed";
    try {
      const result = await run();
      kind = result.kind;
      return result;
    } finally {
      onStep({ result: kind, tookMs: this.#ports.clock.monotonicMs() - startedMs, lagMs });
    }
  }

  /** Aborted when this worker stops, or is no longer sure of its buckets. */
  #untilEither(sure: AbortSignal): AbortSignal {
    if (this.#until?.sure !== sure) this.#until = { sure, signal: linkedController(this.#signal, sure).signal };
    return this.#until.signal;
  }

  #ended(jobUid: string, result: StepResult): void {
    if (result.kind === "notOurs") this.#sharedAtMs = null;
    if (result.kind === "settled") this.#schedule.settle(jobUid);
    else if (result.kind === "unseen") this.#schedule.tryLater(jobUid);
    else if (result.kind === "again") this.#schedule.stepAgain(jobUid, result.afterMs);
    else this.#schedule.leaveOpen(jobUid);
  }

  #failed(error: unknown, jobUid: string): void {
    this.#options.onError(error, `step of job ${jobUid}`);
    this.#schedule.tryLater(jobUid);
  }
}
