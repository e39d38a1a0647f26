import type { ClusterCapacity } from "../../core/plan/snapshot.ts";
import type { Clock } from "../../runtime/clock.ts";

/** What an observer says of its cluster. */
export type CapacityReport = {
  readonly cluster: string;
  /** Null while no list of its nodes and pods has been complete. */
  readonly capacity: ClusterCapacity | null;
  /** False once the observer has tried in vain for its grace; silence alone is not enough. */
  readonly reachable: boolean;
};

export type ObserverOptions = {
  readonly cluster: string;
  readonly clock: Clock;
  /** No two reports follow each other faster. */
  readonly intervalMsMin: number;
  readonly unreachableGraceMs: number;
  /** The capacity of what the reflectors hold; null until both have completed a list. */
  readonly summarize: () => ClusterCapacity | null;
  /** The longest of the reflectors' vain attempts. */
  readonly failingForMs: () => number;
  /** What it rejects with is reported, and the same is said again later. */
  readonly onCapacity: (report: CapacityReport) => void | Promise<void>;
  readonly onError: (error: unknown, what: string) => void;
};

/** How often the grace is looked at while nothing changes, and how long to wait after a report that was not taken. */
const IDLE_MS = 1_000;

/** A summary is made no more often than that it takes this part of the time: its cost grows with the cluster's pods. */
const SHARE_MAX = 0.1;

/** Turns changes of nodes and pods into reports of the cluster's capacity, a few a second at most. */
export class CapacityObserver {
  readonly #options: ObserverOptions;
  #dirty = false;
  #reachable: boolean | null = null;
  #wake = new AbortController();
  #closed = false;
  #running: Promise<void> = Promise.resolve();

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake.abort();
    await this.#running;
  }

  /** Something that the capacity is made from has changed. */
  changed(): void {
    if (this.#dirty) return;
    this.#dirty = true;
    this.#wake.abort();
  }

  async #run(): Promise<void> {
    const { clock, intervalMsMin } = this.#options;
    while (!this.#closed) {
      if (!this.#dirty) await clock.sleep(IDLE_MS, this.#wake.signal);
      if (this.#closed) return;
      this.#wake = new AbortController();
      const startedMs = clock.monotonicMs();
      const taken = await this.#report();
      const tookMs = clock.monotonicMs() - startedMs;
      await this.#pause(taken ? Math.max(intervalMsMin, tookMs / SHARE_MAX) : IDLE_MS);
    }
  }

  /** Sleeps the whole time through changes, but not through the end. */
  async #pause(delayMs: number): Promise<void> {
    const { clock } = this.#options;
    const untilMs = clock.monotonicMs() + delayMs;
    while (!this.#closed) {
      const leftMs = untilMs - clock.monotonicMs();
      if (leftMs <= 0) return;
      const wake = new AbortController();
      this.#wake = wake;
      await clock.sleep(leftMs, wake.signal);
    }
  }

  /** False where the report was refused and is due again. */
  async #report(): Promise<boolean> {
    const { cluster, summarize, failingForMs, unreachableGraceMs, onCapacity, onError } = this.#options;
    const reachable = failingForMs() < unreachableGraceMs;
    if (!this.#dirty && reachable === this.#reachable) return true;
    const capacity = summarize();
    if (capacity === null && reachable) return true;
    this.#dirty = false;
    try {
      await onCapacity({ cluster, capacity, reachable });
      this.#reachable = reachable;
      return true;
    } catch (error) {
      this.#dirty = true;
      onError(error, `capacity of cluster ${cluster}`);
      return false;
    }
  }
}
