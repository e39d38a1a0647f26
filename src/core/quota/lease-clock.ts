/** An entry of the line that was not repeated for so long lapses. */
export const STAND_LEASE_MS = 10_000;

/** How often the lease clock is to be advanced. */
export const TICK_MS = 1_000;

/** One call advances the clock by this at most: whoever slept makes nobody's lease shorter. */
export const TICK_MS_MAX = 2_000;

/** After so many ticks without a report the clock stands: renewals cannot reach us. */
export const SILENT_TICKS_MAX = 2;

/** By how much a tick advances the clock, in whole milliseconds. */
export function advanceMs(elapsedMs: number): number {
  return Number.isNaN(elapsedMs) ? 0 : Math.trunc(Math.min(Math.max(elapsedMs, 0), TICK_MS_MAX));
}

/** The clock of a domain's leases: it stands until somebody can be reached by renewals, and never runs backwards. */
export class LeaseClock {
  #nowMs = 0;
  #silentTicks = SILENT_TICKS_MAX;

  get nowMs(): number {
    return this.#nowMs;
  }

  report(): void {
    this.#silentTicks = 0;
  }

  /** True if the clock went on. */
  tick(elapsedMs: number): boolean {
    if (this.#silentTicks >= SILENT_TICKS_MAX) return false;
    this.#silentTicks += 1;
    this.#nowMs += advanceMs(elapsedMs);
    return true;
  }
}
