import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../src/runtime/clock.ts";

/** More turns of the event loop than anybody takes before it sleeps again. */
const TURNS = 10;

/** A clock that goes on only when everybody sleeps. */
export class SleepersClock implements Clock {
  #nowMs = 0;
  readonly #sleepers = new Set<{ readonly untilMs: number; readonly wake: () => void }>();
  readonly nowMs = () => this.#nowMs;
  readonly monotonicMs = () => this.#nowMs;
  readonly sleep = (delayMs: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      const wake = () => {
        this.#sleepers.delete(sleeper);
        resolve();
      };
      const sleeper = { untilMs: this.#nowMs + Math.max(delayMs, 0), wake };
      this.#sleepers.add(sleeper);
      if (signal?.aborted) wake();
      signal?.addEventListener("abort", wake, { once: true });
    });

  /** The process stands still for so long: nobody wakes meanwhile. */
  standStill(ms: number): void {
    this.#nowMs += ms;
  }

  async goOn(untilMs: number): Promise<void> {
    for (;;) {
      for (let turn = 0; turn < TURNS; turn += 1) await setImmediate();
      const [next] = [...this.#sleepers].sort((a, b) => a.untilMs - b.untilMs);
      if (next === undefined || next.untilMs > untilMs) break;
      this.#nowMs = Math.max(this.#nowMs, next.untilMs);
      next.wake();
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }
}
