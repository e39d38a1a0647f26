import type { AllocationLine, Caps, Scope, Violation } from "./counters.ts";
import { type LimitBook, tighter } from "./limits.ts";
import { scopeKey } from "./scopes.ts";

/** Longer paths to the root are cut: what refuses a tree is its registration, this only ends a walk. */
export const QUEUE_DEPTH_MAX = 64;

/** What of a line decides where it is counted. */
export type ChargedLine = Pick<AllocationLine, "pool" | "project" | "namespace" | "queue" | "amount">;

/** How much one scope's sum changes, and what it stood at. */
export type Charge = { readonly scope: Scope; readonly key: string; readonly used: number; readonly amount: number };

/** The sum of a scope, by its key. */
export type UsedOf = (key: string) => number;

/**
 * What a line adds: to its pool, to its queue and those above, to its project and its namespace, in the order in which they are looked at.
 * A queue passes on to its parent only by how much more it exceeds its guarantee.
 */
export function chargesOf(line: ChargedLine, usedOf: UsedOf, book: LimitBook): readonly Charge[] {
  return walk(line, { amount: line.amount, usedOf, book });
}

/** What a line takes off, exactly as it was added, whatever came and went between: sums of queues depend on each other alone. */
export function dischargesOf(line: ChargedLine, usedOf: UsedOf, book: LimitBook): readonly Charge[] {
  return walk(line, { amount: -line.amount, usedOf, book });
}

/** The charges of a line to its queue and those above, for as long as there is something to pass on. */
export function queueCharges(
  { pool, queue }: Pick<ChargedLine, "pool" | "queue">,
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

/** Every scope that a line may be charged to, whatever is in use: what must be read, or locked, to decide it. */
export function scopesToRead(line: Omit<ChargedLine, "amount">, book: LimitBook): readonly Scope[] {
  const { pool, project, namespace } = line;
  const scopes: Scope[] = [{ kind: "pool", pool }];
  let queue = line.queue;
  while (queue !== null && scopes.length <= QUEUE_DEPTH_MAX) {
    scopes.push({ kind: "queue", pool, queue });
    queue = book.queue(queue, pool).parent;
  }
  return [...scopes, { kind: "project", pool, project }, { kind: "namespace", pool, project, namespace }];
}

/** The first scope that does not allow the first line that is not allowed; null if all of them are. Earlier lines count. */
export function firstViolation(
  lines: readonly (ChargedLine & { readonly caps: Caps })[],
  from: {
    readonly usedOf: UsedOf;
    readonly book: LimitBook;
    /** What of a pool's room is kept for another. */
    readonly reservedIn?: (pool: string) => number;
  },
): { readonly line: number; readonly violation: Violation } | null {
  const added = new Map<string, number>();
  const usedOf: UsedOf = (key) => from.usedOf(key) + (added.get(key) ?? 0);
  for (const [at, line] of lines.entries()) {
    for (const { scope, key, used, amount } of chargesOf(line, usedOf, from.book)) {
      const limit = limitOf(scope, line.caps, from.book);
      const reservedForHead = scope.kind === "pool" ? (from.reservedIn?.(scope.pool) ?? 0) : 0;
      if (amount > limit - used - reservedForHead) {
        return { line: at, violation: { scope, used, limit, requested: amount, reservedForHead } };
      }
      added.set(key, (added.get(key) ?? 0) + amount);
    }
  }
  return null;
}

function walk(
  line: ChargedLine,
  by: { readonly amount: number; readonly usedOf: UsedOf; readonly book: LimitBook },
): readonly Charge[] {
  const { pool, project, namespace } = line;
  const { amount, usedOf } = by;
  return [
    chargeTo({ kind: "pool", pool }, amount, usedOf),
    ...queueCharges(line, by),
    chargeTo({ kind: "project", pool, project }, amount, usedOf),
    chargeTo({ kind: "namespace", pool, project, namespace }, amount, usedOf),
  ];
}

function chargeTo(scope: Scope, amount: number, usedOf: UsedOf): Charge {
  const key = scopeKey(scope);
  return { scope, key, used: usedOf(key), amount };
}

/** What may be used at a scope. */
export function limitOf(scope: Scope, caps: Caps, book: LimitBook): number {
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
