import { firstWhere } from "../../runtime/first-where.ts";
import { getOrCreate } from "../../runtime/get-or-create.ts";
import { maxOf } from "../../runtime/lists.ts";
import { compareText, holderKey, tokenKey } from "./allocations.ts";
import type { Allocation, Holder, WaiterView } from "./counters.ts";

/** A waiting request. It has a place in the waiting line of every pool that it asks for. */
export type Waiter = {
  readonly waiter: string;
  readonly holder: Holder;
  readonly allocations: readonly Allocation[];
  readonly priority: number;
  readonly sinceMs: number;
  readonly grants: boolean;
  /** The time on the lease clock when the place lapses. */
  readonly expiresMs: number;
};

/** The waiting lines of a domain's pools, each ordered by priority, then age, then name. */
export class WaitingLines {
  readonly #waiters = new Map<string, Waiter>();
  readonly #byPool = new Map<string, Waiter[]>();

  get size(): number {
    return this.#waiters.size;
  }

  get(waiter: string): Waiter | undefined {
    return this.#waiters.get(waiter);
  }

  of(pool: string): readonly Waiter[] {
    return this.#byPool.get(pool) ?? [];
  }

  /** Returns the pools that have waiters, in a fixed order. */
  pools(): readonly string[] {
    return [...this.#byPool.keys()].sort((a, b) => compareText(JSON.stringify(a), JSON.stringify(b)));
  }

  put(entry: Waiter): void {
    this.remove(entry.waiter);
    this.#waiters.set(entry.waiter, entry);
    for (const pool of poolsOf(entry.allocations)) {
      const line = getOrCreate(this.#byPool, pool, () => []);
      line.splice(placeIn(line, entry), 0, entry);
    }
  }

  remove(waiter: string): Waiter | undefined {
    const entry = this.#waiters.get(waiter);
    if (entry === undefined) return undefined;
    this.#waiters.delete(waiter);
    for (const pool of poolsOf(entry.allocations)) {
      const line = this.#byPool.get(pool)?.filter((other) => other !== entry) ?? [];
      if (line.length === 0) this.#byPool.delete(pool);
      else this.#byPool.set(pool, line);
    }
    return entry;
  }

  /** Returns the position, from 1, in the waiting line where most others are ahead. */
  positionOf(entry: Waiter): number {
    return maxOf(poolsOf(entry.allocations).map((pool) => this.of(pool).indexOf(entry) + 1));
  }

  lapsed(nowMs: number): readonly Waiter[] {
    return [...this.#waiters.values()].filter((entry) => entry.expiresMs <= nowMs);
  }

  list(): readonly WaiterView[] {
    return this.pools().flatMap((pool) =>
      this.of(pool).map(({ waiter, holder, allocations, priority, sinceMs }) => {
        return { waiter, pool, holder, amount: amountOf(allocations, pool), priority, sinceMs };
      }),
    );
  }
}

/** Returns the pools of some allocations, each once, in their first order. */
export function poolsOf(allocations: readonly { readonly pool: string }[]): readonly string[] {
  return [...new Set(allocations.map(({ pool }) => pool))];
}

/** Returns the amount that some allocations request from one pool. */
export function amountOf(allocations: readonly Allocation[], pool: string): number {
  return allocations.reduce((sum, allocation) => sum + (allocation.pool === pool ? allocation.amount : 0), 0);
}

/** Returns true if a waiter's request or place has changed. Waiters behind it may then have room. */
export function asksOtherwise(before: Waiter, after: Waiter): boolean {
  return textOf(before) !== textOf(after);
}

function textOf({ priority, sinceMs, grants, holder, allocations }: Waiter): string {
  const asked = allocations.map((allocation) => {
    const { amount, project, namespace, queue, caps, leaseMs } = allocation;
    return [tokenKey(allocation), amount, project, namespace, queue, caps.project, caps.namespace, leaseMs];
  });
  return JSON.stringify([priority, sinceMs, grants, holderKey(holder), asked]);
}

function placeIn(line: readonly Waiter[], entry: Waiter): number {
  return firstWhere(0, line.length, (at) => compareWaiters(line[at] as Waiter, entry) >= 0);
}

function compareWaiters(a: Waiter, b: Waiter): number {
  return (
    b.priority - a.priority || a.sinceMs - b.sinceMs || compareText(JSON.stringify(a.waiter), JSON.stringify(b.waiter))
  );
}
