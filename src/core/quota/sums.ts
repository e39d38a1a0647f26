import { invariant } from "../../runtime/assert.ts";
import type { Scope } from "./counters.ts";
import { type Charge, type ChargedAllocation, chargesOf, dischargesOf, queueCharges } from "./decide.ts";
import type { LimitBook } from "./limits.ts";
import { scopeKey } from "./scopes.ts";

type QueueScope = Extract<Scope, { kind: "queue" }>;

/**
 * The use of every scope. A queue's sum counts the allocations that name it, plus the amounts by which the queues below
 * exceed their guarantees.
 */
export class Sums {
  #book: LimitBook;
  readonly #sums = new Map<string, { readonly scope: Scope; readonly used: number }>();
  /**
   * The use by allocations that name a queue directly. A change of the tree recomputes the sums of all queues from
   * these.
   */
  readonly #direct = new Map<string, { readonly scope: QueueScope; readonly used: number }>();

  constructor(book: LimitBook) {
    this.#book = book;
  }

  readonly usedOf = (key: string): number => this.#sums.get(key)?.used ?? 0;

  add(allocation: ChargedAllocation): void {
    this.#apply(chargesOf(allocation, this.usedOf, this.#book));
    this.#addDirect(allocation, allocation.amount);
  }

  remove(allocation: ChargedAllocation): void {
    this.#apply(dischargesOf(allocation, this.usedOf, this.#book));
    this.#addDirect(allocation, -allocation.amount);
  }

  /** Recomputes the sums of all queues from new guarantees and parents. */
  rebuild(book: LimitBook): void {
    this.#book = book;
    for (const [key, { scope }] of this.#sums) if (scope.kind === "queue") this.#sums.delete(key);
    for (const { scope, used } of this.#direct.values()) {
      this.#apply(queueCharges(scope, { amount: used, usedOf: this.usedOf, book }));
    }
  }

  list(): readonly { readonly scope: Scope; readonly used: number }[] {
    return [...this.#sums.values()];
  }

  /** Returns the use by allocations that name each queue directly. */
  listDirect(): readonly { readonly scope: Scope; readonly used: number }[] {
    return [...this.#direct.values()];
  }

  #apply(charges: readonly Charge[]): void {
    for (const { scope, key, used, amount } of charges) put(this.#sums, key, { scope, used: used + amount });
  }

  #addDirect({ pool, queue }: ChargedAllocation, amount: number): void {
    if (queue === null) return;
    const scope = { kind: "queue", pool, queue } as const;
    const key = scopeKey(scope);
    put(this.#direct, key, { scope, used: (this.#direct.get(key)?.used ?? 0) + amount });
  }
}

function put<S extends { readonly used: number }>(sums: Map<string, S>, key: string, sum: S): void {
  invariant(sum.used >= 0, `the sum of ${key} must not be negative, but is ${sum.used}`);
  if (sum.used === 0) sums.delete(key);
  else sums.set(key, sum);
}
