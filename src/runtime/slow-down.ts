/** Others run for at least this many times as long as a part that blocks the thread. */
const SHARE_OF_OTHERS = 10;
/** A part that blocks for less is not slowed: a thread shares such times among its callers anyway. */
export const BLOCKS_FROM_MS = 500;
const WAIT_MS_MAX = 60_000;

/** Slows a part that blocks the thread, so that it has at most a tenth of the time. */
export class SlowDown {
  #untilMs = Number.NEGATIVE_INFINITY;

  /** Notes that code of the part has run without a pause for so long. */
  ran(tookMs: number, monotonicMs: number): void {
    if (tookMs < BLOCKS_FROM_MS) return;
    this.#untilMs = Math.max(this.#untilMs, monotonicMs + Math.min(WAIT_MS_MAX, tookMs * SHARE_OF_OTHERS));
  }

  /** How long the part waits before its next call. 0: it may call now. */
  waitMs(monotonicMs: number): number {
    return Math.max(0, this.#untilMs - monotonicMs);
  }
}
