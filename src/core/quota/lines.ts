import { invariant } from "../../runtime/assert.ts";
import type { AllocationLine } from "./counters.ts";

/** The highest amount, and the highest sum: above it numbers are no longer exact. */
export const AMOUNT_MAX = Number.MAX_SAFE_INTEGER;

/** A fence is epoch × this + a counter that stays below it. */
export const FENCES_PER_EPOCH = 2n ** 32n;

/** Text that two tokens share only if they are the same: a token is unique within its pool. */
export function tokenKey(line: Pick<AllocationLine, "pool" | "token">): string {
  return JSON.stringify([line.pool, line.token]);
}

/** Throws if there is no line, an amount is not a whole number of 1 to 2^53 − 1, or a token comes twice: a caller's bug. */
export function checkLines(lines: readonly AllocationLine[]): void {
  invariant(lines.length > 0, "a grant has at least one line");
  for (const { amount, token } of lines) {
    invariant(Number.isSafeInteger(amount) && amount >= 1, `the amount of ${token} is ${amount}`);
  }
  const tokens = new Set(lines.map(tokenKey));
  invariant(tokens.size === lines.length, "a token names one line of its pool");
}
