import { invariant } from "../../runtime/assert.ts";
import type { Allocation, GrantRequest, Holder, Rest, TurnOver } from "./counters.ts";

/** The highest amount and the highest sum. Numbers above it are not exact. */
export const AMOUNT_MAX = Number.MAX_SAFE_INTEGER;

/** Stands for every amount above `AMOUNT_MAX`. No quota allows it, and larger numbers would not be exact. */
export const AMOUNT_ABOVE = AMOUNT_MAX + 1;

/** An amount, or `AMOUNT_ABOVE` in place of a larger one. */
export function countable(amount: number): number {
  return Math.min(amount, AMOUNT_ABOVE);
}

/** An amount to read. The largest number says that it stands for larger ones too. */
export function amountText(amount: number): string {
  return amount >= AMOUNT_ABOVE ? `${AMOUNT_ABOVE} or more` : String(amount);
}

/** A fence is epoch × this + a counter below this. */
export const FENCES_PER_EPOCH = 2n ** 32n;

/** The highest number of requests that one call grants. It is bounded because all other calls wait for it. */
export const GRANTS_MAX = 256;

/** The sum of any clock and the longest lease is still an exact number. */
const LEASE_MS_MAX = 2 ** 52;

const PRIORITY_MAX = 2 ** 31 - 1;

/** Returns a text that is unique to the token: pool and name. */
export function tokenKey(allocation: Pick<Allocation, "pool" | "token">): string {
  return JSON.stringify([allocation.pool, allocation.token]);
}

/** Returns a text that is unique to the holder. */
export function holderKey(holder: Holder): string {
  return holder.kind === "admission"
    ? JSON.stringify(["admission", holder.jobUid, holder.admission])
    : JSON.stringify(["caller", holder.name]);
}

/** Returns a readable name for a holder if the job's name is not known. No caller's name starts with `job/`. */
export function holderText(holder: Holder): string {
  return holder.kind === "caller" ? holder.name : `job/${holder.jobUid}/${holder.admission}`;
}

export function sameHolder(a: Holder, b: Holder): boolean {
  return holderKey(a) === holderKey(b);
}

/** Returns the holder of a `holderKey`. */
export function holderOfKey(key: string): Holder {
  const [kind, name, admission] = JSON.parse(key) as ["admission" | "caller", string, number];
  return kind === "admission" ? { kind, jobUid: name, admission } : { kind, name };
}

/** Orders texts by their code points, like servers that compare UTF-8 bytes. */
export function compareText(one: string, other: string): number {
  if (one === other) return 0;
  const [a, b] = [[...one], [...other]];
  const at = a.findIndex((character, index) => character !== b[index]);
  if (at === -1) return a.length - b.length;
  return (a[at]?.codePointAt(0) ?? -1) - (b[at]?.codePointAt(0) ?? -1);
}

/**
 * Throws unless there is at least one allocation, every amount is an integer from 1 to 2^53 − 1, every cap an integer
 * of at least 0, every lease an integer of at least 1, and no token comes twice. A failure is a bug of the caller.
 */
export function checkAllocations(allocations: readonly Allocation[]): void {
  invariant(allocations.length > 0, "a grant needs at least one allocation");
  for (const { amount, token, caps, leaseMs } of allocations) {
    invariant(
      Number.isSafeInteger(amount) && amount >= 1,
      `the amount of ${token} must be an integer from 1 to 2^53 − 1, but is ${amount}`,
    );
    for (const cap of [caps.project, caps.namespace]) {
      invariant(
        cap === null || (Number.isSafeInteger(cap) && cap >= 0),
        `a cap of ${token} must be null or an integer of at least 0, but is ${cap}`,
      );
    }
    checkLease(token, leaseMs);
  }
  const tokens = new Set(allocations.map(tokenKey));
  invariant(tokens.size === allocations.length, "a request must not name a token twice");
}

/** Throws if there are too many requests, or if one of them is malformed. A failure is a bug of the caller. */
export function checkGrants(requests: readonly Pick<GrantRequest, "allocations" | "priority">[]): void {
  invariant(
    requests.length <= GRANTS_MAX,
    `one call grants at most ${GRANTS_MAX} requests, but got ${requests.length}`,
  );
  for (const { allocations, priority } of requests) {
    checkAllocations(allocations);
    checkPriority(priority);
  }
}

/**
 * Throws unless every amount that is left is an integer from 1 to 2^53 − 1. To leave nothing, free the allocation. A
 * failure is a bug of the caller.
 */
export function checkRests(rests: readonly Rest[]): void {
  for (const { amount, token } of rests) {
    invariant(
      Number.isSafeInteger(amount) && amount >= 1,
      `the rest of ${token} must be an integer from 1 to 2^53 − 1, but is ${amount}`,
    );
  }
}

/**
 * Throws unless every heir gets at least 1 token of the pool from which it is taken, and every amount to keep is an
 * integer of at least 0. A failure is a bug of the caller.
 */
export function checkTurnOvers(turns: readonly TurnOver[]): void {
  for (const { from, to } of turns) {
    invariant(from.pool === to.pool, `tokens of ${from.pool} cannot be turned over as tokens of ${to.pool}`);
    invariant(
      Number.isSafeInteger(to.amount) && to.amount >= 1,
      `the amount of ${to.token} must be an integer from 1 to 2^53 − 1, but is ${to.amount}`,
    );
    invariant(
      Number.isSafeInteger(from.kept) && from.kept >= 0,
      `the rest of ${from.token} must be an integer from 0 to 2^53 − 1, but is ${from.kept}`,
    );
  }
}

/** Throws unless the lease is null or an integer from 1 to 2^52. A failure is a bug of the caller. */
export function checkLease(token: string, leaseMs: number | null): void {
  const fits = leaseMs === null || (Number.isSafeInteger(leaseMs) && leaseMs >= 1 && leaseMs <= LEASE_MS_MAX);
  invariant(fits, `the lease of ${token} must be null or from 1 to 2^52 ms, but is ${leaseMs}`);
}

/** Throws unless the priority is a 32-bit integer. A failure is a bug of the caller. */
export function checkPriority(priority: number): void {
  invariant(
    Number.isInteger(priority) && Math.abs(priority) <= PRIORITY_MAX + (priority < 0 ? 1 : 0),
    `the priority must be a 32-bit integer, but is ${priority}`,
  );
}

/**
 * Throws if the waiter has no valid order, or if the waiting line is to grant more than one allocation. A failure is a
 * bug of the caller.
 */
export function checkStand(of: {
  readonly allocations: readonly Allocation[];
  readonly priority: number;
  readonly sinceMs: number;
  readonly grants: boolean;
}): void {
  checkAllocations(of.allocations);
  checkPriority(of.priority);
  invariant(
    Number.isSafeInteger(of.sinceMs) && of.sinceMs >= 0,
    `a waiter's sinceMs must be an integer of at least 0, but is ${of.sinceMs}`,
  );
  invariant(!of.grants || of.allocations.length === 1, "a waiting line grants requests of exactly one allocation");
}
