import { AMOUNT_MAX } from "./allocations.ts";
import type { QueueLimit } from "./counters.ts";
import type { Freeze } from "./freeze.ts";

/** A queue as an admin wrote it. */
export type TreeQueue = {
  readonly name: string;
  readonly parent: string | null;
  /** Who has frozen the queue itself. Omitted or null: nobody. */
  readonly freeze?: Freeze | null;
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

/** A queue in one pool: its own quota and what the queues below it lend. */
export type TreeQuota = {
  readonly pool: string;
  /** The nominal amount that the queue itself has. */
  readonly own: number;
  /** The nominal amount of the queue with what the queues below lend to it. */
  readonly nominal: number;
  /** The part of `nominal` that the queue above never sees. */
  readonly guarantee: number;
  /** The amount that the queue may borrow above `nominal`. Null: as much as others lend. A root cannot borrow. */
  readonly borrowingLimit: number | null;
};

/** A queue with its place in its tree. Null: the queue is the root. */
export type TreePlace = {
  readonly name: string;
  readonly parent: string | null;
  readonly quotas: readonly TreeQuota[];
  /** Who has frozen the queue, or the nearest one above it that is frozen. Omitted: none is. */
  readonly freeze?: Freeze;
};

/**
 * Returns the place and the quotas of each queue, in the order given. A queue has a quota for each pool that is named
 * by it or below it. A parent that does not exist, or that would close a circle, counts as no parent.
 */
export function treePlacesOf(queues: readonly TreeQueue[]): readonly TreePlace[] {
  const tree = new Tree(queues);
  return queues.map((queue) => {
    const quotas = tree.poolsOf(queue).map((pool) => tree.quotaOf(queue, pool));
    const freeze = tree.freezeOf(queue);
    return { name: queue.name, parent: tree.parentOf(queue), quotas, ...(freeze === null ? {} : { freeze }) };
  });
}

/**
 * Returns the limits of each queue of a tree in each pool. A queue without a quota for a pool still has limits there if
 * a queue below has a quota: the sum of what the queues below lend. A parent that does not exist, or that would close a
 * circle, counts as no parent.
 */
export function queueLimitsOf(queues: readonly TreeQueue[]): readonly QueueLimit[] {
  return treePlacesOf(queues).flatMap((place) => place.quotas.map((quota) => limitOf(place, quota)));
}

function limitOf(
  { name, parent, freeze }: TreePlace,
  { pool, nominal, guarantee, borrowingLimit }: TreeQuota,
): QueueLimit {
  const most = borrowingLimit === null ? AMOUNT_MAX : nominal + borrowingLimit;
  const ceiling = parent === null ? nominal : Math.min(most, AMOUNT_MAX);
  return { queue: name, pool, parent, ceiling, guarantee, ...(freeze === undefined ? {} : { freeze }) };
}

class Tree {
  readonly #parents = new Map<string, string | null>();
  readonly #children = new Map<string, TreeQueue[]>();
  readonly #pools = new Map<string, ReadonlySet<string>>();
  readonly #nominals = new Map<string, number>();
  readonly #freezes = new Map<string, Freeze>();

  constructor(queues: readonly TreeQueue[]) {
    const byName = new Map(queues.map((queue) => [queue.name, queue]));
    for (const { name, freeze = null } of queues) if (freeze !== null) this.#freezes.set(name, freeze);
    for (const queue of queues) {
      const parent = parentIn(byName, queue);
      this.#parents.set(queue.name, parent);
      if (parent !== null) this.#children.set(parent, [...(this.#children.get(parent) ?? []), queue]);
    }
  }

  poolsOf(queue: TreeQueue): readonly string[] {
    return [...this.#poolSet(queue)];
  }

  parentOf(queue: TreeQueue): string | null {
    return this.#parents.get(queue.name) ?? null;
  }

  freezeOf({ name }: TreeQueue): Freeze | null {
    let next: string | null = this.#freezes.size === 0 ? null : name;
    while (next !== null) {
      const freeze = this.#freezes.get(next);
      if (freeze !== undefined) return freeze;
      next = this.#parents.get(next) ?? null;
    }
    return null;
  }

  quotaOf(queue: TreeQueue, pool: string): TreeQuota {
    const nominal = this.#nominalOf(queue, pool);
    const { nominal: own, borrowingLimit, lendingLimit } = quotaOf(queue, pool);
    return { pool, own, nominal, guarantee: nominal - lent(nominal, lendingLimit), borrowingLimit };
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
