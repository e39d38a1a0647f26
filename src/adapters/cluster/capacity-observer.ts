import type { ClusterCapacity } from "../../core/plan/snapshot.ts";
import type { Clock } from "../../runtime/clock.ts";

/** A report of a cluster's capacity. */
export type CapacityReport = {
  readonly cluster: string;
  /** Null until nodes and pods have been listed completely. */
  readonly capacity: ClusterCapacity | null;
  /** False once calls to the cluster have failed for the grace period. Silence alone is not enough. */
  readonly reachable: boolean;
};

type ObserverOptions = {
  readonly cluster: string;
  readonly clock: Clock;
  /** The shortest time between two reports. */
  readonly intervalMsMin: number;
  readonly unreachableGraceMs: number;
  /** The capacity of the nodes and pods that the reflectors have. Null until both have completed a list. */
  readonly summarize: () => ClusterCapacity | null;
  /** For how long the calls of the worst reflector have been failing. */
  readonly failingForMs: () => number;
  /** Takes a report. If it rejects, the error is reported and the report is repeated later. */
  readonly onCapacity: (report: CapacityReport) => void | Promise<void>;
  readonly onError: (error: unknown, what: string) => void;
};

/** How often the grace period is checked while nothing changes, and the wait after a report that was not taken. */
const IDLE_MS = 1_000;

/** The largest part of the time that summaries may take: their cost grows with the cluster's pods. */
const SHARE_MAX = 0.1;

/** Turns changes of nodes and pods into reports of the cluster's capacity, at most a few a second. */
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

  /** Notes that nodes or pods have changed. */
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

  /** Sleeps the whole time whatever changes, but ends when the observer is closed. */
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

  /** Reports if there is news. False: the report was not taken and is due again. */
  async #report(): Promise<boolean> {
    const { cluster, summarize, failingForMs, unreachableGraceMs, onCapacity, onError } = this.#options;
    const reachable = failingForMs() < unreachableGraceMs;
    if (!this.#dirty && reachable === this.#reachable) return true;
    try {
      const capacity = summarize();
      if (capacity === null && reachable) return true;
      this.#dirty = false;
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
