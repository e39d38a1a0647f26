import type { BranchUse, PoolAmounts } from "./branch-use.ts";
import type { Branch } from "./branches.ts";

/**
 * How much a branch uses of what others lend, as in Kueue's fair sharing (`fair_sharing.go`). The resource with the
 * largest share counts.
 */
export type Share = {
  /** 1000 × what it uses beyond its quota ÷ what the branch above can lend. 0 for a root. */
  readonly ratio: number;
  readonly weight: number;
  /** The resource that the ratio is of. Empty: the ratio is 0. */
  readonly resource: string;
  /** True: it uses more than its quota of some pool, also where nothing is lent. */
  readonly borrows: boolean;
};

/** The share of a branch. `added` counts as used by the branch itself; the branches around it stay as they are. */
export function shareOf(use: BranchUse, branch: Branch, added?: PoolAmounts): Share {
  const { weight } = branch;
  const share = { ratio: 0, weight, resource: "", borrows: false };
  if (branch.parent === null) return share;
  for (const { resource, pools, lendable } of branch.resources) {
    let borrowed = 0;
    for (const pool of pools) {
      borrowed += Math.max(0, use.usedIn(pool) + (added?.get(pool.pool) ?? 0) - pool.nominal);
    }
    if (borrowed === 0) continue;
    share.borrows = true;
    if (lendable <= 0) continue;
    const ratio = (1000 * borrowed) / lendable;
    if (ratio > share.ratio) {
      share.ratio = ratio;
      share.resource = resource;
    }
  }
  return share;
}

/** The share by which branches compare: the ratio divided by the weight, not rounded. */
export function weightedShare({ ratio, weight }: Share): number {
  if (ratio === 0) return 0;
  return weight === 0 ? Number.POSITIVE_INFINITY : ratio / weight;
}

/** Orders the lower share first. Two shares of branches with weight 0 that borrow compare by their ratios. */
export function compareShares(a: Share, b: Share): number {
  const [one, other] = [weightedShare(a), weightedShare(b)];
  if (one === other) return one === Number.POSITIVE_INFINITY ? a.ratio - b.ratio : 0;
  return one < other ? -1 : 1;
}

/** The share as Kueue shows it: a whole number, rounded up. Infinite for a branch of weight 0 that borrows. */
export function shownShare(share: Share): number {
  return Math.ceil(weightedShare(share));
}
