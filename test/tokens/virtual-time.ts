import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../src/runtime/clock.ts";

const START_MS = 1_750_000_000_000;

type Sleeper = { readonly clock: ProcessClock; readonly untilMs: number; readonly wake: () => void };

/** Time that passes only when a test advances it, for several processes and their loops. */
export class VirtualTime {
  #atMs = 0;
  readonly #sleepers = new Set<Sleeper>();

  /** Makes the clock of a process. */
  clock(): ProcessClock {
    const clock: ProcessClock = new ProcessClock({
      atMs: () => this.#atMs,
      sleep: (delayMs, signal) => this.#sleep(clock, delayMs, signal),
    });
    return clock;
  }

  /** Starts a loop that runs as time passes. Each of its rounds ends before time passes further. */
  async run(loop: (clock: Clock, signal: AbortSignal) => Promise<void>): Promise<RunningLoop> {
    const running = new RunningLoop(this.clock(), loop);
    await this.#untilIdle(running.clock);
    return running;
  }

  async pass(durationMs: number): Promise<void> {
    const endMs = this.#atMs + durationMs;
    for (let next = this.#next(endMs); next !== null; next = this.#next(endMs)) {
      // A sleeper whose time has passed already wakes now.
      this.#atMs = Math.max(this.#atMs, next.untilMs);
      next.wake();
      await this.#untilIdle(next.clock);
    }
    this.#atMs = endMs;
  }

  /** Lets time pass until the work ends. If nothing sleeps, almost none passes. */
  async during<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    const end = () => {
      isOver = true;
    };
    work.then(end, end);
    while (!isOver) {
      await setImmediate();
      await this.pass(1);
    }
    return work;
  }

  async #untilIdle(clock: ProcessClock): Promise<void> {
    while (clock.isBusy && ![...this.#sleepers].some((sleeper) => sleeper.clock === clock)) await setImmediate();
  }

  #next(endMs: number): Sleeper | null {
    const due = [...this.#sleepers].filter(({ clock, untilMs }) => !clock.isStalled && untilMs <= endMs);
    return due.sort((a, b) => a.untilMs - b.untilMs)[0] ?? null;
  }

  #sleep(clock: ProcessClock, delayMs: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const sleeper = { clock, untilMs: this.#atMs + delayMs, wake };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }
}

/** The clock of a process. Its wall clock may jump, but its monotonic clock does not. */
export class ProcessClock implements Clock {
  readonly sleep: Clock["sleep"];
  readonly monotonicMs: () => number;
  readonly nowMs: () => number;
  /** The error of the wall clock. */
  offsetMs = 0;
  /** True: sleepers on this clock do not wake. */
  isStalled = false;
  /** True: the loop of this clock runs, or sleeps. */
  isBusy = false;

  constructor(of: { readonly atMs: () => number; readonly sleep: Clock["sleep"] }) {
    this.sleep = of.sleep;
    this.monotonicMs = of.atMs;
    this.nowMs = () => START_MS + of.atMs() + this.offsetMs;
  }
}

export class RunningLoop {
  readonly clock: ProcessClock;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  constructor(clock: ProcessClock, loop: (clock: Clock, signal: AbortSignal) => Promise<void>) {
    this.clock = clock;
    clock.isBusy = true;
    this.#running = loop(clock, this.#stop.signal).finally(() => {
      clock.isBusy = false;
    });
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}
