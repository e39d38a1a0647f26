/** Holds refusals of a caller back, so that one that calls on and on is refused at a steady pace. */
import type { Clock } from "../runtime/clock.ts";

/** As many calls a second as every caller may make by default: being refused is no way to make more. */
const PER_SECOND = 100;
const INTERVAL_MS = 1_000 / PER_SECOND;
/** A caller that is seldom refused hears of it at once. */
const AT_ONCE = 100;
/** Clients give their calls longer than this. */
const HELD_MS_MAX = 5_000;
const CALLERS_KEPT_MAX = 10_000;
/** Multiples of the golden ratio lie evenly between whole numbers, however many there are. */
const GOLDEN = (Math.sqrt(5) - 1) / 2;

export class RefusalPace {
  /** When each caller is refused next. */
  readonly #nextMs = new Map<string, number>();
  /** Refusals that the pace would have held back for too long. */
  #beyond = 0;
  readonly #clock: Pick<Clock, "monotonicMs">;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Counts a refusal of the caller, and returns for how many whole milliseconds it is held back. */
  heldMs(subject: string): number {
    const nowMs = this.#clock.monotonicMs();
    const earliestMs = nowMs - AT_ONCE * INTERVAL_MS;
    const atMs = Math.max(this.#nextMs.get(subject) ?? earliestMs, earliestMs) + INTERVAL_MS;
    if (this.#nextMs.size >= CALLERS_KEPT_MAX) this.#forget(nowMs);
    this.#nextMs.set(subject, Math.min(atMs, nowMs + HELD_MS_MAX));
    const heldMs = atMs - nowMs;
    return Math.ceil(heldMs > HELD_MS_MAX ? this.#spreadMs() : Math.max(heldMs, 0));
  }

  /** Calls that came together would otherwise be answered together, and come back together. */
  #spreadMs(): number {
    this.#beyond = (this.#beyond + GOLDEN) % 1;
    return HELD_MS_MAX * (1 - this.#beyond / 2);
  }

  /** Forgets callers that are refused at once again, and so all others if there are too many. */
  #forget(nowMs: number): void {
    for (const [subject, nextMs] of this.#nextMs) if (nextMs <= nowMs) this.#nextMs.delete(subject);
    if (this.#nextMs.size >= CALLERS_KEPT_MAX) this.#nextMs.clear();
  }
}
