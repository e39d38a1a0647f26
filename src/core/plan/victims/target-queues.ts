import type { BranchUse } from "../usage/branch-use.ts";
import { type Branch, rootOf, upward } from "../usage/branches.ts";
import { compareShares, type Share, shareOf } from "../usage/shares.ts";
import type { RunningGang } from "./running-gang.ts";

/** Candidates by the leaf of their queue, in their order. */
export type Candidates = {
  /** The leaves that may have candidates. */
  readonly leaves: readonly Branch[];
  readonly of: (leaf: Branch) => readonly RunningGang[];
};

type Contender = { readonly branch: Branch; readonly share: Share };

/**
 * The candidates by queue, and the queue that is preempted next by Kueue's fair sharing (`fairsharing/ordering.go`):
 * from the root down, the branch with the greatest share. The shares are those at the moment of the question.
 */
export class TargetQueues {
  readonly #use: BranchUse;
  readonly #preemptorLeaf: Branch;
  readonly #order: (a: RunningGang, b: RunningGang) => number;
  readonly #path: ReadonlySet<Branch>;
  readonly #candidates: Candidates;
  /** The candidates that are left of the leaves that were looked at. */
  readonly #left = new Map<Branch, RunningGang[]>();
  /** The leaves that may have candidates, and all branches above them. */
  readonly #holding = new Set<Branch>();
  /** Branches without candidates that may be taken. They never get one again. */
  readonly #done = new Set<Branch>();

  constructor(
    use: BranchUse,
    preemptorLeaf: Branch,
    of: { readonly candidates: Candidates; readonly order: (a: RunningGang, b: RunningGang) => number },
  ) {
    this.#use = use;
    this.#preemptorLeaf = preemptorLeaf;
    this.#order = of.order;
    this.#candidates = of.candidates;
    this.#path = new Set(upward(preemptorLeaf));
    for (const leaf of of.candidates.leaves) {
      for (const branch of upward(leaf)) this.#holding.add(branch);
    }
  }

  /** The next leaf. Null: none is left. The caller takes a candidate of the leaf, or drops it, before it asks again. */
  next(): Branch | null {
    const root = rootOf(this.#preemptorLeaf);
    while (!this.#done.has(root)) {
      const leaf = this.#descend(root);
      if (leaf !== null) return leaf;
    }
    return null;
  }

  /** Takes the first candidate of a leaf. Null: none is left. */
  shift(leaf: Branch): RunningGang | null {
    return this.#leftIn(leaf).shift() ?? null;
  }

  #leftIn(leaf: Branch): RunningGang[] {
    const left = this.#left.get(leaf) ?? [...this.#candidates.of(leaf)];
    this.#left.set(leaf, left);
    return left;
  }

  drop(leaf: Branch): void {
    this.#done.add(leaf);
  }

  /** Goes to the child with the greatest share until it is at a leaf. Null: a branch was found to be done. */
  #descend(branch: Branch): Branch | null {
    if (branch.children.length === 0) return this.#contender(branch)?.branch ?? null;
    let best: Contender | null = null;
    for (const child of branch.children) {
      const contender = this.#contender(child);
      if (contender !== null && (best === null || this.#isBefore(contender, best))) best = contender;
    }
    if (best !== null) return this.#descend(best.branch);
    this.#done.add(branch);
    return null;
  }

  /**
   * Null for a leaf without candidates, and for a branch that does not borrow, unless it is on the preemptor's path.
   */
  #contender(branch: Branch): Contender | null {
    if (this.#done.has(branch)) return null;
    if (this.#holding.has(branch) && (branch.children.length > 0 || this.#leftIn(branch).length > 0)) {
      const share = shareOf(this.#use, branch);
      if (share.borrows || this.#path.has(branch)) return { branch, share };
    }
    this.#done.add(branch);
    return null;
  }

  /** Of equal shares a branch with branches below it comes before a leaf, because the most unfair of them is taken. */
  #isBefore(one: Contender, other: Contender): boolean {
    const byShare = compareShares(one.share, other.share);
    if (byShare !== 0) return byShare > 0;
    if (one.branch.children.length > 0) return true;
    if (other.branch.children.length > 0) return false;
    return this.#order(this.#first(one.branch), this.#first(other.branch)) < 0;
  }

  #first(leaf: Branch): RunningGang {
    return this.#leftIn(leaf)[0] as RunningGang;
  }
}
