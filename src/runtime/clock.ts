/** The time for everything outside core, which takes `nowMs` as an argument. Simulations pass a virtual clock. */
export type Clock = {
  /** Milliseconds since 1970. In a process of the service: decision time, which never goes back (`decision-time`). */
  readonly nowMs: () => number;
  /** Milliseconds of this process alone that never go backwards: for leases and timeouts. */
  readonly monotonicMs: () => number;
  /** Resolves after `delayMs`, or as soon as `signal` is aborted; never rejects. */
  readonly sleep: (delayMs: number, signal?: AbortSignal) => Promise<void>;
};

/** The machine's clock, which may step: for the command line, for logs, and for the credentials of callers. */
export function systemClock(): Clock {
  return {
    nowMs: () => Date.now(),
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
