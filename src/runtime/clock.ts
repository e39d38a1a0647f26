/** The time for everything outside core, which takes `nowMs` as an argument. Simulations pass a virtual clock. */
export type Clock = {
  /** Milliseconds since 1970 as the database counts them: shown, stored and ordered. */
  readonly nowMs: () => number;
  /** Milliseconds of this process alone that never go backwards: for leases and timeouts. */
  readonly monotonicMs: () => number;
  /** Resolves after `delayMs`, or as soon as `signal` is aborted; never rejects. */
  readonly sleep: (delayMs: number, signal?: AbortSignal) => Promise<void>;
};

/** The machine's clock, shifted by `offsetMs` to agree with the database's. */
export function systemClock(offsetMs = 0): Clock {
  return {
    nowMs: () => Date.now() + offsetMs,
    monotonicMs: () => performance.now(),
    sleep: (delayMs, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const done = () => {
          clearTimeout(timer);
          signal?.removeEventListener("abort", done);
          resolve();
        };
        const timer = setTimeout(done, delayMs);
        signal?.addEventListener("abort", done, { once: true });
      }),
  };
}
