/**
 * Serves teams that share pools: decides which request gets tokens now, which one waits, and whom freed room serves.
 */

import { holderKey } from "./allocations.ts";
import type { Allocation, Conflict, Grant, Holder, LedgerRow, Limits, TurnOver, Violation } from "./counters.ts";
import { firstViolation } from "./decide.ts";
import { LeaseClock } from "./lease-clock.ts";
import { type LimitBook, limitBook, thawedBook } from "./limits.ts";
import { scopeKey } from "./scopes.ts";
import { Sums } from "./sums.ts";
import { type Held, hasLapsed, leftMs, Tokens } from "./tokens.ts";
import { amountOf, poolsOf, type Waiter, WaitingLines } from "./waiting-line.ts";

/** The maximum number of waiters that one call serves. The next call or tick serves the rest. */
export const SERVED_MAX = 256;

/** A request for allocations, from a waiter or from a caller without a place in a waiting line. */
export type Asking = {
  readonly holder: Holder;
  readonly allocations: readonly Allocation[];
  readonly priority: number;
  readonly waiter: string | null;
};

/** The held tokens, limits and waiting lines of a domain, and the decisions over them. `CounterState` checks epochs. */
export class DomainState {
  readonly tokens = new Tokens();
  readonly waitingLines = new WaitingLines();
  readonly clock = new LeaseClock();
  readonly sums: Sums;
  #limits: Limits;
  #book: LimitBook;
  #thawed: LimitBook;
  /** Returns null if the epoch has no fence left. */
  readonly #nextFence: () => bigint | null;
  readonly #offer: (waiter: string) => void;

  constructor(of: {
    readonly rows: readonly LedgerRow[];
    readonly limits: Limits;
    readonly nextFence: () => bigint | null;
    readonly offer: (waiter: string) => void;
  }) {
    this.#limits = of.limits;
    this.#book = limitBook(of.limits);
    this.#thawed = thawedBook(of.limits);
    this.sums = new Sums(this.#book);
    this.#nextFence = of.nextFence;
    this.#offer = of.offer;
    for (const row of of.rows) this.#hold(row, true);
  }

  get limits(): Limits {
    return this.#limits;
  }

  setLimits(limits: Limits): void {
    this.#limits = limits;
    this.#book = limitBook(limits);
    this.#thawed = thawedBook(limits);
    this.sums.rebuild(this.#book);
    this.serve(this.waitingLines.pools());
  }

  /**
   * Looks up the tokens of a request: a grant if the request already holds them all, a conflict if not. Null: none of
   * the tokens is held.
   */
  known({ holder, allocations }: Pick<Asking, "holder" | "allocations">): Grant | Conflict | null {
    const held = allocations.map((allocation) => this.tokens.get(allocation));
    const first = held.find((one) => one !== undefined);
    if (first === undefined) return null;
    const mine = held.filter(
      (one, at) => one !== undefined && this.#isGrantOf(one, { holder, allocation: allocations[at], first }),
    );
    const other = allocations.findIndex((_, at) => !mine.includes(held[at]));
    const { pool, token } = allocations[other] ?? first.row;
    if (other !== -1) return { kind: "conflict", pool, token, confirmed: (held[other] ?? first).confirmed };
    return {
      kind: "granted",
      fence: first.row.fence,
      held: true,
      confirmed: held.every((one) => one?.confirmed),
      expiresInMs: held.map((one) => (one === undefined ? null : leftMs(one, this.clock.nowMs))),
    };
  }

  hasRoomFor(tokens: number): boolean {
    return this.tokens.size + tokens <= this.#limits.tokensMax;
  }

  /** Returns the limit that refuses a request at its place in the waiting line. Null: the request fits. */
  violation(asking: Asking): Violation | null {
    return this.firstViolation(asking)?.violation ?? null;
  }

  /** Like `violation`, with the index of the refused allocation. */
  firstViolation(asking: Asking): { readonly index: number; readonly violation: Violation } | null {
    const { usedOf } = this.sums;
    const reservedIn = (pool: string) => this.#reservedIn(pool, asking);
    return firstViolation(asking.allocations, { usedOf, book: this.#book, reservedIn });
  }

  /**
   * Returns the limit that refuses the allocations even if nothing is in use or frozen. Null: they could fit.
   */
  never(allocations: readonly Allocation[]): Violation | null {
    const found = firstViolation(allocations, { usedOf: () => 0, book: this.#thawed });
    return found && { ...found.violation, used: this.sums.usedOf(scopeKey(found.violation.scope)) };
  }

  /** Holds the allocations under a new fence. Returns null if no fence is left. */
  grant({ holder, allocations }: Pick<Asking, "holder" | "allocations">): Grant | null {
    const fence = this.#nextFence();
    if (fence === null) return null;
    for (const { caps: _, ...allocation } of allocations) this.#hold({ ...allocation, holder, fence }, false);
    return {
      kind: "granted",
      fence,
      held: false,
      confirmed: false,
      expiresInMs: allocations.map((allocation) => allocation.leaseMs),
    };
  }

  free(held: Held): void {
    this.tokens.drop(held);
    this.sums.remove(held.row);
  }

  /** Reduces a token to an amount. */
  shrink(held: Held, amount: number): void {
    this.tokens.shrink(held, amount);
    this.sums.remove({ ...held.row, amount: held.row.amount - amount });
  }

  /** Takes a part of a token, or all of it, and gives the heir its share of that. The ledger has it already. */
  turnOver(held: Held, { from, to }: TurnOver): void {
    const taken = held.row.amount - from.kept;
    if (from.kept === 0) this.free(held);
    else this.shrink(held, from.kept);
    this.#hold({ ...to, amount: Math.min(to.amount, taken), leaseMs: null }, true);
  }

  /** Removes a waiter from its waiting lines and serves them, since room may have been reserved for this waiter. */
  leave(waiter: string | null): boolean {
    const entry = waiter === null ? undefined : this.waitingLines.remove(waiter);
    if (entry === undefined) return false;
    this.serve(poolsOf(entry.allocations));
    return true;
  }

  /**
   * Serves the waiting lines of these pools: grants to their heads while requests fit. A head that asks for the grant
   * itself gets an offer instead.
   */
  serve(pools: readonly string[]): void {
    let left = SERVED_MAX;
    for (const pool of pools) left = this.#servePool(pool, left);
  }

  #servePool(pool: string, most: number): number {
    let left = most;
    for (const entry of this.waitingLines.of(pool)) {
      if (left === 0) break;
      const known = this.known(entry);
      const served = known === null && this.#lacksOnlyPools(entry) ? this.#serveHead(entry) : "passedOver";
      if (served === "stop") break;
      if (served !== "granted" && known?.kind !== "granted") continue;
      this.waitingLines.remove(entry.waiter);
      this.#offer(entry.waiter);
      left -= 1;
    }
    return left;
  }

  #serveHead(entry: Waiter): "granted" | "stop" {
    if (this.violation(entry) !== null) return "stop";
    if (!entry.grants) {
      this.#offer(entry.waiter);
      return "stop";
    }
    return this.hasRoomFor(entry.allocations.length) && this.grant(entry) !== null ? "granted" : "stop";
  }

  /**
   * Returns the room that the pool reserves for the head of its waiting line, if that head goes before this request.
   */
  #reservedIn(pool: string, asking: Asking): number {
    const waiting = this.waitingLines.of(pool);
    for (const entry of waiting) {
      if (entry.waiter === asking.waiter) return 0;
      if (this.known(entry) !== null || !this.#lacksOnlyPools(entry)) continue;
      const stands = waiting.some((other) => other.waiter === asking.waiter);
      return stands || asking.priority <= entry.priority ? amountOf(entry.allocations, pool) : 0;
    }
    return 0;
  }

  /**
   * Returns true if only the current use of the pools can refuse the allocations: queues and caps allow them now, and
   * they would fit into empty pools.
   */
  #lacksOnlyPools({ allocations }: Waiter): boolean {
    const pools = new Set(allocations.map(({ pool }) => scopeKey({ kind: "pool", pool })));
    const usedOf = (key: string) => (pools.has(key) ? 0 : this.sums.usedOf(key));
    return firstViolation(allocations, { usedOf, book: this.#book }) === null;
  }

  #isGrantOf(
    held: Held,
    of: { readonly holder: Holder; readonly allocation: Allocation | undefined; readonly first: Held },
  ): boolean {
    const { row } = held;
    return (
      row.fence === of.first.row.fence &&
      row.amount === of.allocation?.amount &&
      holderKey(row.holder) === holderKey(of.holder) &&
      !hasLapsed(held, this.clock.nowMs)
    );
  }

  #hold(row: LedgerRow, confirmed: boolean): void {
    this.tokens.hold(row, { confirmed, nowMs: this.clock.nowMs });
    this.sums.add(row);
  }
}
