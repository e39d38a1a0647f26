import type { Branch, BranchPool } from "./branches.ts";

/** The use of a branch in one pool, which moves as gangs are charged: that of `QuotaState`. */
export type BranchUse = { readonly usedIn: (pool: BranchPool) => number };

/** PoolAmounts by pool. */
export type PoolAmounts = ReadonlyMap<string, number>;

/**
 * What a branch may still use of a pool: what is left of its guarantee, and what the branches above let it use. As in
 * Kueue (`resource_node.go`), a branch above that uses more than it has takes from the guarantees below it too.
 */
export function availableIn(use: BranchUse, pool: BranchPool): number {
  return Math.max(0, leftIn(use, pool));
}

/** The same for the leaf of a queue. 0: the queue has no quota for the pool. */
export function available(use: BranchUse, leaf: Branch, pool: string): number {
  const of = leaf.pools.get(pool);
  return of === undefined ? 0 : availableIn(use, of);
}

function leftIn(use: BranchUse, pool: BranchPool): number {
  const used = use.usedIn(pool);
  const { nominal, guarantee, borrowingLimit, above } = pool;
  if (above === null) return nominal - used;
  const shared = leftIn(use, above);
  const passed = Math.max(0, used - guarantee);
  const most = borrowingLimit === null ? Number.POSITIVE_INFINITY : nominal - guarantee - passed + borrowingLimit;
  return guaranteeLeft(use, pool) + Math.min(shared, most);
}

/** The part of a branch's guarantee that is not in use. */
export function guaranteeLeft(use: BranchUse, pool: BranchPool): number {
  return Math.max(0, pool.guarantee - use.usedIn(pool));
}

/** True if a branch would use more than its quota with `more` of the pool added at the branch itself. */
export function borrowsWith(use: BranchUse, pool: BranchPool, more: number): boolean {
  return use.usedIn(pool) + more > pool.nominal;
}

/** True if a branch uses no more than its quota of each of the pools. */
export function isWithinQuota(use: BranchUse, branch: Branch, pools: Iterable<string>): boolean {
  for (const name of pools) {
    const pool = branch.pools.get(name);
    if (pool !== undefined && borrowsWith(use, pool, 0)) return false;
  }
  return true;
}

/** True if a branch uses at least its quota of each of the pools. */
export function usesItsQuota(use: BranchUse, branch: Branch, pools: Iterable<string>): boolean {
  for (const name of pools) {
    const pool = branch.pools.get(name);
    if (pool !== undefined && use.usedIn(pool) < pool.nominal) return false;
  }
  return true;
}

/** True if a branch uses more than its quota of a pool of which an amount is wanted. */
export function borrowsAny(use: BranchUse, branch: Branch, requested: PoolAmounts): boolean {
  return !isWithinQuota(
    use,
    branch,
    [...requested].flatMap(([pool, amount]) => (amount > 0 ? [pool] : [])),
  );
}

/** The lowest branch whose quota suffices for an amount: its height, and whether it is less than the whole tree. */
export type LowestFit = { readonly height: number; readonly belowRoot: boolean };

/**
 * Finds the lowest branch above a leaf, or the leaf itself, that has capacity for `amount` within its own quota. If
 * none has, it is the whole tree.
 */
export function lowestFit(use: BranchUse, leaf: BranchPool, amount: number): LowestFit {
  let remaining = amount;
  let at = leaf;
  while (at.above !== null && borrowsWith(use, at, remaining)) {
    remaining -= guaranteeLeft(use, at);
    at = at.above;
  }
  return { height: at.height, belowRoot: at.above !== null };
}

/**
 * How far a gang borrows: the height of the lowest branch with capacity for all that it requests. 0: its own queue has
 * the capacity. Kueue admits those first that borrow from nearer.
 */
export function borrowingLevel(use: BranchUse, leaf: Branch, requested: PoolAmounts): number {
  let level = 0;
  for (const [name, amount] of requested) {
    const pool = leaf.pools.get(name);
    if (pool !== undefined) level = Math.max(level, lowestFit(use, pool, amount).height);
  }
  return level;
}

/**
 * Whether a branch has capacity for amounts within its quota, and what the branch above must hold of them: all but what
 * the branch has left of its guarantee.
 */
export function fitsInQuota(
  use: BranchUse,
  branch: Branch,
  requested: PoolAmounts,
): { fits: boolean; passed: PoolAmounts } {
  let fits = true;
  const passed = new Map<string, number>();
  for (const [name, amount] of requested) {
    const pool = branch.pools.get(name);
    if (pool === undefined) continue;
    if (borrowsWith(use, pool, amount)) fits = false;
    passed.set(name, Math.max(0, amount - guaranteeLeft(use, pool)));
  }
  return { fits, passed };
}

/** The lowest branch that holds both of two leaves. Null: they are in different trees, or are the same root. */
export function commonAncestor(one: Branch, other: Branch): Branch | null {
  for (let branch = other.parent; branch !== null; branch = branch.parent) {
    for (let above = one.parent; above !== null; above = above.parent) if (above === branch) return branch;
  }
  return null;
}

/** The branch right below an ancestor that holds a leaf. Below null: the leaf's root. */
export function childTowards(ancestor: Branch | null, leaf: Branch): Branch {
  let at = leaf;
  while (at.parent !== null && at.parent !== ancestor) at = at.parent;
  return at;
}
