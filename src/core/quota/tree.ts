import { AMOUNT_MAX } from "./allocations.ts";
import type { QueueLimit } from "./counters.ts";

/** A queue as an admin wrote it. */
export type TreeQueue = {
  readonly name: string;
  readonly parent: string | null;
  readonly quotas: readonly {
    readonly pool: string;
    readonly nominal: number;
    /** The amount that the queue may borrow above its nominal amount. Null: as much as others lend. */
    readonly borrowingLimit: number | null;
    /** The part of its nominal amount that the queue lends to others. Null: all. */
    readonly lendingLimit: number | null;
  }[];
};

type Quota = TreeQueue["quotas"][number];

/**
 * Returns the limits of each queue of a tree in each pool. A queue without a quota for a pool still has limits there if
 * a queue below has a quota: the sum of what the queues below lend. A parent that does not exist, or that would close a
 * circle, counts as no parent.
 */
export function queueLimitsOf(queues: readonly TreeQueue[]): readonly QueueLimit[] {
  const tree = new Tree(queues);
  return queues.flatMap((queue) => tree.poolsOf(queue).map((pool) => tree.limitOf(queue, pool)));
}

class Tree {
  readonly #parents = new Map<string, string | null>();
  readonly #children = new Map<string, TreeQueue[]>();
  readonly #pools = new Map<string, ReadonlySet<string>>();
  readonly #nominals = new Map<string, number>();

  constructor(queues: readonly TreeQueue[]) {
    const byName = new Map(queues.map((queue) => [queue.name, queue]));
    for (const queue of queues) {
      const parent = parentIn(byName, queue);
      this.#parents.set(queue.name, parent);
      if (parent !== null) this.#children.set(parent, [...(this.#children.get(parent) ?? []), queue]);
    }
  }

  poolsOf(queue: TreeQueue): readonly string[] {
    return [...this.#poolSet(queue)];
  }

  limitOf(queue: TreeQueue, pool: string): QueueLimit {
    const parent = this.#parents.get(queue.name) ?? null;
    const nominal = this.#nominalOf(queue, pool);
    const { borrowingLimit, lendingLimit } = quotaOf(queue, pool);
    const most = borrowingLimit === null ? AMOUNT_MAX : nominal + borrowingLimit;
    return {
      queue: queue.name,
      pool,
      parent,
      ceiling: parent === null ? nominal : Math.min(most, AMOUNT_MAX),
      guarantee: nominal - lent(nominal, lendingLimit),
    };
  }

  #poolSet(queue: TreeQueue): ReadonlySet<string> {
    const known = this.#pools.get(queue.name);
    if (known !== undefined) return known;
    const below = (this.#children.get(queue.name) ?? []).flatMap((child) => [...this.#poolSet(child)]);
    const pools = new Set([...queue.quotas.map(({ pool }) => pool), ...below]);
    this.#pools.set(queue.name, pools);
    return pools;
  }

  /** Returns the queue's own nominal amount plus what the queues below lend. */
  #nominalOf(queue: TreeQueue, pool: string): number {
    const key = JSON.stringify([queue.name, pool]);
    const known = this.#nominals.get(key);
    if (known !== undefined) return known;
    let nominal = quotaOf(queue, pool).nominal;
    for (const child of this.#children.get(queue.name) ?? []) {
      if (!this.#poolSet(child).has(pool)) continue;
      nominal += lent(this.#nominalOf(child, pool), quotaOf(child, pool).lendingLimit);
    }
    nominal = Math.min(nominal, AMOUNT_MAX);
    this.#nominals.set(key, nominal);
    return nominal;
  }
}

function parentIn(byName: ReadonlyMap<string, TreeQueue>, queue: TreeQueue): string | null {
  if (queue.parent === null || !byName.has(queue.parent)) return null;
  const above = new Set<string>();
  let next: string | null = queue.parent;
  while (next !== null && !above.has(next)) {
    if (next === queue.name) return null;
    above.add(next);
    next = byName.get(next)?.parent ?? null;
  }
  return queue.parent;
}

function quotaOf(queue: TreeQueue, pool: string): Quota {
  const quota = queue.quotas.find((one) => one.pool === pool);
  return quota ?? { pool, nominal: 0, borrowingLimit: null, lendingLimit: null };
}

function lent(nominal: number, lendingLimit: number | null): number {
  return Math.min(lendingLimit ?? nominal, nominal);
}
