import type { BranchUse } from "./branch-use.ts";
import type { Branch, BranchPool } from "./branches.ts";

/** The use of a branch in one pool, as part of its tree. */
type PoolUse = {
  /** How much the branch uses beyond its quota. 0 for a root, which has nobody to borrow from. */
  readonly borrowed: number;
  /** How much of its quota it could lend, and does not use itself. */
  readonly spare: number;
};

function poolUse(use: BranchUse, pool: BranchPool): PoolUse {
  const { nominal, guarantee, above } = pool;
  const used = use.usedIn(pool);
  if (above === null) return { borrowed: 0, spare: 0 };
  return { borrowed: Math.max(0, used - nominal), spare: Math.max(0, nominal - Math.max(guarantee, used)) };
}

/** How much of each pool a branch uses beyond its quota, by pool. Omits pools of which it is nothing. */
export function borrowedBy(use: BranchUse, branch: Branch): ReadonlyMap<string, number> {
  return amounts([...branch.pools.values()].map((pool) => [pool.pool, poolUse(use, pool).borrowed]));
}

/** A leaf and how much of its quota other branches use, by pool. Omits pools of which it is nothing. */
export type Lent = { readonly leaf: Branch; readonly lent: ReadonlyMap<string, number> };

/**
 * Tells for each leaf of a tree how much of its quota other branches use. The use itself does not say whose quota it
 * is beyond a branch's own; so those that have something to spare count in proportion to it.
 */
export function lentInTree(use: BranchUse, root: Branch): readonly Lent[] {
  const found: Lent[] = [];
  spread(use, { branch: root, given: new Map() }, found);
  return found;
}

/** Spreads what a branch gives to those around it, and what the branches below use of each other, over its leaves. */
function spread(
  use: BranchUse,
  { branch, given }: { readonly branch: Branch; readonly given: ReadonlyMap<string, number> },
  found: Lent[],
): void {
  if (branch.children.length === 0) {
    found.push({ leaf: branch, lent: given });
    return;
  }
  const parts = branch.children.map((child) => ({ child, parts: [] as [string, number][] }));
  for (const pool of branch.pools.keys()) {
    const uses = branch.children.map((child) => childUse(use, child, pool));
    const wanted = uses.reduce((sum, { borrowed }) => sum + borrowed, given.get(pool) ?? 0);
    const taken = inProportion(
      wanted,
      uses.map(({ spare }) => spare),
    );
    for (const [at, part] of taken.entries()) parts[at]?.parts.push([pool, part]);
  }
  for (const { child, parts: ofChild } of parts) spread(use, { branch: child, given: amounts(ofChild) }, found);
}

function childUse(use: BranchUse, child: Branch, pool: string): PoolUse {
  const of = child.pools.get(pool);
  return of === undefined ? { borrowed: 0, spare: 0 } : poolUse(use, of);
}

/** Splits an amount, at most the sum of all, in proportion to them. What is left over goes to the first ones. */
function inProportion(amount: number, all: readonly number[]): readonly number[] {
  const sum = all.reduce((total, one) => total + one, 0);
  const wanted = Math.min(amount, sum);
  if (wanted === 0) return all.map(() => 0);
  const parts = all.map((one) => Math.floor((wanted / sum) * one));
  let left = wanted - parts.reduce((total, part) => total + part, 0);
  return parts.map((part, at) => {
    const more = Math.min(left, (all[at] ?? 0) - part);
    left -= more;
    return part + more;
  });
}

function amounts(of: readonly (readonly [pool: string, amount: number])[]): ReadonlyMap<string, number> {
  return new Map(of.filter(([, amount]) => amount > 0));
}
