import type { Allocation, Limits, Scope, Violation } from "./counters.ts";
import {
  type Charge,
  type ChargedAllocation,
  chargesOf,
  dischargesOf,
  firstViolation,
  queueCharges,
} from "./decide.ts";
import { type LimitBook, limitBook } from "./limits.ts";
import { scopeKey, scopeOfKey } from "./scopes.ts";

/** A recorded sum. A queue's sum counts only the allocations that name the queue itself. */
export type RecordedSum = { readonly scope: Scope; readonly used: number };

/**
 * The use of every scope while grants are decided one after the other. It starts from the recorded sums and adds to
 * each queue what the queues below pass on.
 */
export class GrantBook {
  readonly limits: LimitBook;
  readonly #used = new Map<string, number>();
  readonly #usedOf = (key: string) => this.#used.get(key) ?? 0;

  constructor(limits: Pick<Limits, "pools" | "queues">, sums: readonly RecordedSum[]) {
    this.limits = limitBook(limits);
    for (const { scope, used } of sums) {
      if (scope.kind !== "queue") this.#add(scopeKey(scope), used);
      else this.#addQueue(scope, used);
    }
  }

  /**
   * Counts all of these allocations in place of the holds, which are counted; or none, and returns the limit that
   * refused them.
   */
  take(allocations: readonly Allocation[], holds: readonly ChargedAllocation[] = []): Violation | null {
    for (const hold of holds) this.#discharge(hold);
    const found = firstViolation(allocations, { usedOf: this.#usedOf, book: this.limits });
    for (const allocation of found === null ? allocations : holds) this.charge(allocation);
    return found?.violation ?? null;
  }

  /** Returns what an allocation would add to each of its scopes now, in the order of the checks. */
  charges(allocation: ChargedAllocation): readonly Charge[] {
    return chargesOf(allocation, this.#usedOf, this.limits);
  }

  /** Counts an allocation even if it exceeds limits. */
  charge(allocation: ChargedAllocation): void {
    for (const { key, amount } of this.charges(allocation)) this.#add(key, amount);
  }

  #discharge(allocation: ChargedAllocation): void {
    for (const { key, amount } of dischargesOf(allocation, this.#usedOf, this.limits)) this.#add(key, amount);
  }

  usedAt(scope: Scope): number {
    return this.#usedOf(scopeKey(scope));
  }

  /** Returns every scope whose use is above 0. */
  used(): readonly RecordedSum[] {
    return [...this.#used].filter(([, used]) => used > 0).map(([key, used]) => ({ scope: scopeOfKey(key), used }));
  }

  #addQueue({ pool, queue }: { readonly pool: string; readonly queue: string }, amount: number): void {
    for (const charge of queueCharges({ pool, queue }, { amount, usedOf: this.#usedOf, book: this.limits })) {
      this.#add(charge.key, charge.amount);
    }
  }

  #add(key: string, amount: number): void {
    this.#used.set(key, this.#usedOf(key) + amount);
  }
}
