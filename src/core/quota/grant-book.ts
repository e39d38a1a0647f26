import type { AllocationLine, Limits, Scope, Violation } from "./counters.ts";
import { type Charge, type ChargedLine, chargesOf, firstViolation, queueCharges } from "./decide.ts";
import { type LimitBook, limitBook } from "./limits.ts";
import { scopeKey, scopeOfKey } from "./scopes.ts";

/** A sum as it is recorded: of a queue, that of its own lines. */
export type RecordedSum = { readonly scope: Scope; readonly used: number };

/** What is used at every scope while grants are decided one after the other: the recorded sums, with what queues pass on to those above them. */
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

  /** Counts all of these lines, or none and says what is in their way. */
  take(lines: readonly AllocationLine[]): Violation | null {
    const found = firstViolation(lines, { usedOf: this.#usedOf, book: this.limits });
    if (found !== null) return found.violation;
    for (const line of lines) this.charge(line);
    return null;
  }

  /** What a line would add at each of its scopes now, in the order in which they are looked at. */
  charges(line: ChargedLine): readonly Charge[] {
    return chargesOf(line, this.#usedOf, this.limits);
  }

  /** Counts a line whether or not its limits allow it. */
  charge(line: ChargedLine): void {
    for (const { key, amount } of this.charges(line)) this.#add(key, amount);
  }

  usedAt(scope: Scope): number {
    return this.#usedOf(scopeKey(scope));
  }

  /** Every scope with a use above 0. */
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
