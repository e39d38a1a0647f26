/** A place in a waiting line lapses if it is not repeated for this long. */
export const STAND_LEASE_MS = 10_000;

/** The interval between two ticks of the lease clock. */
export const TICK_MS = 1_000;

/** The maximum step of the clock. A process that was suspended therefore does not make leases lapse early. */
export const TICK_MS_MAX = 2_000;

/** The clock stops after this many ticks without a report, because no api process may be receiving renewals. */
export const SILENT_TICKS_MAX = 2;

/** Returns the step of one tick, in whole milliseconds. */
export function advanceMs(elapsedMs: number): number {
  return Number.isNaN(elapsedMs) ? 0 : Math.trunc(Math.min(Math.max(elapsedMs, 0), TICK_MS_MAX));
}

/**
 * The clock of a domain's leases. It stops while no api process reports that renewals reach it, and never goes
 * backwards.
 */
export class LeaseClock {
  #nowMs = 0;
  #silentTicks = SILENT_TICKS_MAX;

  get nowMs(): number {
    return this.#nowMs;
  }

  report(): void {
    this.#silentTicks = 0;
  }

  /** Returns true if the clock advanced. */
  tick(elapsedMs: number): boolean {
    if (this.#silentTicks >= SILENT_TICKS_MAX) return false;
    this.#silentTicks += 1;
    this.#nowMs += advanceMs(elapsedMs);
    return true;
  }
}
