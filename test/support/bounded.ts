/** Waits with a bound: each throws an error that says what did not happen. */
import { setTimeout as sleep } from "node:timers/promises";

/** Long enough for a busy machine: a condition that does not hold by then will never hold. */
export const WAIT_MS_MAX = 240_000;
const POLL_MS = 50;

/** Resolves once the condition holds. */
export async function waitUntil(
  what: string,
  holds: () => boolean | Promise<boolean>,
  { maxMs = WAIT_MS_MAX, pollMs = POLL_MS }: { readonly maxMs?: number; readonly pollMs?: number } = {},
): Promise<void> {
  const endMs = performance.now() + maxMs;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`waited ${maxMs / 1000} s until ${what}, which did not happen`);
    await sleep(pollMs);
  }
}

/** Resolves once a count is at least `wanted`. Throws only if the count does not change for `stallMs`. */
export async function waitForCount(
  what: string,
  count: () => Promise<number>,
  {
    wanted,
    stallMs = WAIT_MS_MAX,
    pollMs = POLL_MS,
  }: {
    readonly wanted: number;
    readonly stallMs?: number;
    readonly pollMs?: number;
  },
): Promise<void> {
  let last = await count();
  let changedMs = performance.now();
  while (last < wanted) {
    await sleep(pollMs);
    const now = await count();
    if (now !== last) changedMs = performance.now();
    else if (performance.now() - changedMs > stallMs) {
      throw new Error(
        `waited for ${wanted} ${what}: there are ${now}, and the count did not change for ${stallMs / 1000} s`,
      );
    }
    last = now;
  }
}

/** The result of a promise; throws if it takes longer. */
export async function within<T>(what: string, maxMs: number, result: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`${what} took longer than ${maxMs / 1000} s`)), maxMs);
  try {
    return await Promise.race([result, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
