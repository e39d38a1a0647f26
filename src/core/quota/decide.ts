import type { Allocation, Caps, Scope, Violation } from "./counters.ts";
import type { Freeze } from "./freeze.ts";
import { type LimitBook, tighter } from "./limits.ts";
import { scopeKey } from "./scopes.ts";

/** The length at which a walk to the root stops. Registration refuses deeper trees; this bound only ends a walk. */
export const QUEUE_DEPTH_MAX = 64;

/** The members of an allocation that decide where it is counted. */
export type ChargedAllocation = Pick<Allocation, "pool" | "project" | "namespace" | "queue" | "amount">;

/** The change of one scope's sum, with the sum before the change. */
export type Charge = { readonly scope: Scope; readonly key: string; readonly used: number; readonly amount: number };

/** The sum of a scope, by its key. */
export type UsedOf = (key: string) => number;

/**
 * Returns what an allocation adds, in the order of the checks: pool, queue and the queues above it, project, namespace.
 * A queue passes to its parent only the part by which it newly exceeds its guarantee.
 */
export function chargesOf(allocation: ChargedAllocation, usedOf: UsedOf, book: LimitBook): readonly Charge[] {
  return walk(allocation, { amount: allocation.amount, usedOf, book });
}

/**
 * Returns what an allocation takes off. The sums end as if the allocation had never been added, whatever was added or
 * removed in between: a queue's sum depends only on the queues below it.
 */
export function dischargesOf(allocation: ChargedAllocation, usedOf: UsedOf, book: LimitBook): readonly Charge[] {
  return walk(allocation, { amount: -allocation.amount, usedOf, book });
}

/**
 * Returns the charges of an allocation to its queue and the queues above, up to the first queue that passes nothing on.
 */
export function queueCharges(
  { pool, queue }: Pick<ChargedAllocation, "pool" | "queue">,
  { amount, usedOf, book }: { readonly amount: number; readonly usedOf: UsedOf; readonly book: LimitBook },
): readonly Charge[] {
  const charges: Charge[] = [];
  let passed = amount;
  let next = queue;
  while (next !== null && passed !== 0 && charges.length < QUEUE_DEPTH_MAX) {
    const charge = chargeTo({ kind: "queue", pool, queue: next }, passed, usedOf);
    charges.push(charge);
    const { guarantee, parent } = book.queue(next, pool);
    passed = excess(charge.used + passed, guarantee) - excess(charge.used, guarantee);
    next = parent;
  }
  return charges;
}

/**
 * Returns every scope that an allocation could be charged to, whatever is in use. A decision must read, or lock, all of
 * them.
 */
export function scopesToRead(allocation: Omit<ChargedAllocation, "amount">, book: LimitBook): readonly Scope[] {
  const { pool, project, namespace } = allocation;
  const scopes: Scope[] = [{ kind: "pool", pool }];
  let queue = allocation.queue;
  while (queue !== null && scopes.length <= QUEUE_DEPTH_MAX) {
    scopes.push({ kind: "queue", pool, queue });
    queue = book.queue(queue, pool).parent;
  }
  return [...scopes, { kind: "project", pool, project }, { kind: "namespace", pool, project, namespace }];
}

/**
 * Returns the first refusing scope of the first allocation that does not fit. Null: all allocations fit. Each
 * allocation also counts against the ones after it.
 */
export function firstViolation(
  allocations: readonly (ChargedAllocation & { readonly caps: Caps })[],
  from: {
    readonly usedOf: UsedOf;
    readonly book: LimitBook;
    /** Returns the room of a pool that is reserved for another waiter. */
    readonly reservedIn?: (pool: string) => number;
  },
): { readonly index: number; readonly violation: Violation } | null {
  const added = new Map<string, number>();
  const usedOf: UsedOf = (key) => from.usedOf(key) + (added.get(key) ?? 0);
  for (const [at, allocation] of allocations.entries()) {
    for (const { scope, key, used, amount } of chargesOf(allocation, usedOf, from.book)) {
      const limit = limitOf(scope, allocation.caps, from.book);
      const reservedForHead = scope.kind === "pool" ? (from.reservedIn?.(scope.pool) ?? 0) : 0;
      if (amount > limit - used - reservedForHead) {
        return { index: at, violation: marked({ scope, used, limit, requested: amount, reservedForHead }, from.book) };
      }
      added.set(key, (added.get(key) ?? 0) + amount);
    }
  }
  return null;
}

/** Says so if the limit is that of a freeze. */
function marked(violation: Violation, book: LimitBook): Violation {
  return freezeOf(violation.scope, book) === undefined ? violation : { ...violation, frozen: true };
}

function walk(
  allocation: ChargedAllocation,
  by: { readonly amount: number; readonly usedOf: UsedOf; readonly book: LimitBook },
): readonly Charge[] {
  const { pool, project, namespace } = allocation;
  const { amount, usedOf } = by;
  return [
    chargeTo({ kind: "pool", pool }, amount, usedOf),
    ...queueCharges(allocation, by),
    chargeTo({ kind: "project", pool, project }, amount, usedOf),
    chargeTo({ kind: "namespace", pool, project, namespace }, amount, usedOf),
  ];
}

function chargeTo(scope: Scope, amount: number, usedOf: UsedOf): Charge {
  const key = scopeKey(scope);
  return { scope, key, used: usedOf(key), amount };
}

/** Who has frozen a scope. Undefined: it is not frozen. Projects and namespaces never are. */
export function freezeOf(scope: Scope, book: LimitBook): Freeze | undefined {
  if (scope.kind === "pool") return book.pool(scope.pool).freeze;
  return scope.kind === "queue" ? book.queue(scope.queue, scope.pool).freeze : undefined;
}

/** Returns the limit of a scope: 0 for one that is frozen. */
export function limitOf(scope: Scope, caps: Caps, book: LimitBook): number {
  if (freezeOf(scope, book) !== undefined) return 0;
  switch (scope.kind) {
    case "pool":
      return tighter(book.pool(scope.pool).quota, null);
    case "queue":
      return book.queue(scope.queue, scope.pool).ceiling;
    case "project":
      return tighter(book.pool(scope.pool).projectDefault, caps.project);
    case "namespace":
      return tighter(book.pool(scope.pool).namespaceDefault, caps.namespace);
  }
}

function excess(used: number, guarantee: number): number {
  return Math.max(0, used - guarantee);
}
