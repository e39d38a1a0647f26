/**
 * How many writes to one cluster may be under way at a time: more while it answers as fast as it can, fewer once it
 * throttles or slows down. It serves clusters that others use as well, and whose API servers differ.
 */
import { maxOf, minOf } from "../../runtime/lists.ts";

export type WriteBounds = { readonly min: number; readonly max: number };

/** How a write ended. `overloaded`: the server throttled it, or it took too long. */
export type WriteEnd = { readonly tookMs: number; readonly overloaded: boolean };

const START = 10;
/** A window is judged after so long, and once it has as many answers as the limit. */
const WINDOW_MS = 1_000;
/** The part of the limit that remains after a window with too much. */
const AFTER_TOO_MUCH = 0.7;
/** The limit rises only if this part of it was used. */
const USED_MIN = 0.8;
/** Answers may take this many times as long as they do at best. */
const SLOWER_MAX = 2;
/** Answers that take less are fast, whatever they took at best. */
const BASE_MS_MIN = 20;
const BASE_WINDOWS_MS = 60_000;

/**
 * Additive increase, multiplicative decrease, by windows of answers. Until the first sign of too much the limit
 * doubles, as TCP starts: a window then has as many answers as the limit, however short it is. A gang that is created
 * after a start would wait for it otherwise. Times are of a clock that never goes back.
 */
export class WriteLimit {
  readonly #bounds: WriteBounds;
  #limit: number;
  #inFlight = 0;
  #reductions = 0;
  #window: { readonly sinceMs: number; readonly tookMs: number[]; overloaded: boolean; inFlightMax: number };
  /** The medians of the windows of the last minute. */
  #medians: readonly { readonly atMs: number; readonly ms: number }[] = [];

  constructor(bounds: WriteBounds, nowMs: number) {
    this.#bounds = bounds;
    this.#limit = Math.min(Math.max(START, bounds.min), bounds.max);
    this.#window = newWindow(nowMs);
  }

  get limit(): number {
    return this.#limit;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** A write begins. Returns what its end needs. */
  begin(): number {
    this.#inFlight += 1;
    this.#window.inFlightMax = Math.max(this.#window.inFlightMax, this.#inFlight);
    return this.#reductions;
  }

  /**
   * A write ends. `end` is null if the server was not reached: that says nothing of how busy it is. Nor does the answer
   * to a write of before the limit was last reduced: more were under way then.
   */
  end(end: WriteEnd | null, { begun, nowMs }: { readonly begun: number; readonly nowMs: number }): void {
    this.#inFlight -= 1;
    if (end === null || begun < this.#reductions) return;
    const window = this.#window;
    window.tookMs.push(end.tookMs);
    window.overloaded ||= end.overloaded;
    const windowMs = this.#reductions === 0 ? 0 : WINDOW_MS;
    if (nowMs - window.sinceMs < windowMs || window.tookMs.length < this.#limit) return;
    this.#judge(nowMs);
    this.#window = newWindow(nowMs);
    this.#window.inFlightMax = this.#inFlight;
  }

  #judge(nowMs: number): void {
    const { tookMs, overloaded, inFlightMax } = this.#window;
    const sorted = tookMs.sort((a, b) => a - b);
    const recent = this.#medians.filter(({ atMs }) => nowMs - atMs < BASE_WINDOWS_MS);
    this.#medians = [...recent, { atMs: nowMs, ms: quantile(sorted, 0.5) }];
    const baseMs = maxOf([BASE_MS_MIN, minOf(this.#medians.map(({ ms }) => ms))]);
    const { min, max } = this.#bounds;
    if (overloaded || quantile(sorted, 0.9) > SLOWER_MAX * baseMs) {
      this.#limit = Math.max(min, Math.floor(this.#limit * AFTER_TOO_MUCH));
      this.#reductions += 1;
    } else if (inFlightMax >= USED_MIN * this.#limit) {
      this.#limit = Math.min(max, this.#reductions === 0 ? 2 * this.#limit : this.#limit + 1);
    }
  }
}

function newWindow(sinceMs: number) {
  return { sinceMs, tookMs: [] as number[], overloaded: false, inFlightMax: 0 };
}

/** Of numbers in ascending order, at least one. */
function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}
