import { invariant } from "../../runtime/assert.ts";
import type { AllocationLine, Holder, Rest } from "./counters.ts";

/** The highest amount, and the highest sum: above it numbers are no longer exact. */
export const AMOUNT_MAX = Number.MAX_SAFE_INTEGER;

/** A fence is epoch × this + a counter that stays below it. */
export const FENCES_PER_EPOCH = 2n ** 32n;

/** Any clock that a lease is added to stays exact. */
const LEASE_MS_MAX = 2 ** 52;

const PRIORITY_MAX = 2 ** 31 - 1;

/** Text that two tokens share only if they are the same: a token is unique within its pool. */
export function tokenKey(line: Pick<AllocationLine, "pool" | "token">): string {
  return JSON.stringify([line.pool, line.token]);
}

/** Text that two holders share only if they are the same. */
export function holderKey(holder: Holder): string {
  return holder.kind === "admission"
    ? JSON.stringify(["admission", holder.jobUid, holder.admission])
    : JSON.stringify(["caller", holder.name]);
}

export function sameHolder(a: Holder, b: Holder): boolean {
  return holderKey(a) === holderKey(b);
}

/** The holder that a key was made of. */
export function holderOfKey(key: string): Holder {
  const [kind, name, admission] = JSON.parse(key) as ["admission" | "caller", string, number];
  return kind === "admission" ? { kind, jobUid: name, admission } : { kind, name };
}

/** Orders texts by their code points, as servers that compare bytes of UTF-8 do. */
export function compareText(one: string, other: string): number {
  if (one === other) return 0;
  const [a, b] = [[...one], [...other]];
  const at = a.findIndex((character, index) => character !== b[index]);
  if (at === -1) return a.length - b.length;
  return (a[at]?.codePointAt(0) ?? -1) - (b[at]?.codePointAt(0) ?? -1);
}

/**
 * Throws if there is no line, an amount is not a whole number of 1 to 2^53 − 1, a cap is not one from 0 on, a lease not one from 1 on, or a token comes
 * twice: a caller's bug.
 */
export function checkLines(lines: readonly AllocationLine[]): void {
  invariant(lines.length > 0, "a grant has at least one line");
  for (const { amount, token, caps, leaseMs } of lines) {
    invariant(Number.isSafeInteger(amount) && amount >= 1, `the amount of ${token} is ${amount}`);
    for (const cap of [caps.project, caps.namespace]) {
      invariant(cap === null || (Number.isSafeInteger(cap) && cap >= 0), `a cap of ${token} is ${cap}`);
    }
    checkLease(token, leaseMs);
  }
  const tokens = new Set(lines.map(tokenKey));
  invariant(tokens.size === lines.length, "a token names one line of its pool");
}

/** Throws for a rest that is not a whole number of 1 to 2^53 − 1: a caller's bug. Where nothing is left the line is freed. */
export function checkRests(rests: readonly Rest[]): void {
  for (const { amount, token } of rests) {
    invariant(Number.isSafeInteger(amount) && amount >= 1, `what is left of ${token} is ${amount}`);
  }
}

/** Throws for a lease that is neither null nor a whole number of 1 to 2^52: a caller's bug. */
export function checkLease(token: string, leaseMs: number | null): void {
  const fits = leaseMs === null || (Number.isSafeInteger(leaseMs) && leaseMs >= 1 && leaseMs <= LEASE_MS_MAX);
  invariant(fits, `the lease of ${token} is ${leaseMs}`);
}

/** Throws for a priority that is not a whole number of 32 bits: a caller's bug. */
export function checkPriority(priority: number): void {
  invariant(
    Number.isInteger(priority) && Math.abs(priority) <= PRIORITY_MAX + (priority < 0 ? 1 : 0),
    `the priority is ${priority}`,
  );
}

/** Throws for a waiter that could not be ordered, or that is to be granted other than one line: a caller's bug. */
export function checkStand(of: {
  readonly lines: readonly AllocationLine[];
  readonly priority: number;
  readonly sinceMs: number;
  readonly grants: boolean;
}): void {
  checkLines(of.lines);
  checkPriority(of.priority);
  invariant(Number.isSafeInteger(of.sinceMs) && of.sinceMs >= 0, `a waiter waits since ${of.sinceMs}`);
  invariant(!of.grants || of.lines.length === 1, "a line grants one line");
}
