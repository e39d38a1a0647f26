import type { PreemptionReason } from "../../job/preemption.ts";
import type { FairSharingStrategy } from "../queue-policy.ts";
import { childTowards, commonAncestor, isWithinQuota } from "../state/branch-use.ts";
import { type Branch, upward } from "../state/branches.ts";
import { compareShares, type Share, shareOf } from "../state/shares.ts";
import { allows } from "./candidates.ts";
import type { Rule } from "./rule.ts";
import {
  hasGrowthIn,
  type RunningGang,
  type Taker,
  type Victim,
  type VictimSearch,
  whileGone,
} from "./running-gang.ts";
import type { Taking } from "./taking.ts";
import { chargeOthers, type WaitingGangs } from "./waiting-gangs.ts";

type Asking = {
  readonly search: VictimSearch;
  readonly taker: Taker;
  readonly takerLeaf: Branch;
  readonly strategies: readonly FairSharingStrategy[];
};

/**
 * Who may give way by fair sharing, while the state counts the taker's wants as used. By each strategy the taker's new
 * share must also be below the victim's share before, so that a victim never takes back what it gave. By the strategy
 * of initial shares the taker's share counts what else of its queue then fits into what is freed.
 */
export class FairRule implements Rule {
  readonly #asking: Asking;
  /** The branches on the taker's path that stay within their quota with it, before anybody gives way. */
  readonly #withinQuota: ReadonlySet<Branch>;
  readonly #listed: () => readonly RunningGang[];
  readonly #taking: Taking;
  #candidates: readonly RunningGang[] | null = null;

  constructor(asking: Asking, of: { readonly candidates: () => readonly RunningGang[]; readonly taking: Taking }) {
    this.#asking = asking;
    this.#listed = of.candidates;
    this.#taking = of.taking;
    const { search, taker, takerLeaf } = asking;
    const path = [...upward(takerLeaf)];
    this.#withinQuota = new Set(path.filter((branch) => isWithinQuota(search.quota, branch, taker.needed)));
  }

  get candidates(): readonly RunningGang[] {
    this.#candidates ??= this.#listed();
    return this.#candidates;
  }

  readonly isOwn = ({ account }: RunningGang): boolean => account.queue === this.#asking.taker.account.queue;

  readonly fits = (gone: readonly Victim[]): boolean => this.#taking.fitsWhenAdded(gone);

  readonly reasonFor = (gang: RunningGang): PreemptionReason | null => {
    if (this.isOwn(gang)) return "InClusterQueue";
    const { search, takerLeaf, strategies } = this.#asking;
    const leaf = search.quota.branches.leaf(gang.account.queue);
    if (leaf === null) return null;
    const ancestor = commonAncestor(leaf, takerLeaf);
    if (!this.#isAboveQuota(gang, leaf, ancestor)) return null;
    if (this.isWithinOwnQuota) return "InCohortReclamation";
    if (strategies.some((strategy) => this.allows(strategy, gang, leaf))) return "InCohortFairSharing";
    return this.#reclaims(ancestor) ? "InCohortReclamation" : null;
  };

  /**
   * True if the gang's queue borrows, and each branch between it and the ancestor uses more than its quota of a pool
   * that the taker needs. In Kueue it suffices that such a branch borrows anything; with several flavors, two branches
   * would then take the same tokens from each other for ever.
   */
  #isAboveQuota(gang: RunningGang, leaf: Branch, ancestor: Branch | null): boolean {
    const { search, taker } = this.#asking;
    const { quota } = search;
    for (const branch of upward(leaf.parent ?? leaf)) {
      if (branch === ancestor) break;
      if (isWithinQuota(quota, branch, taker.needed)) return false;
    }
    if (hasGrowthIn(gang, this.candidates)) return !isWithinQuota(quota, leaf, taker.needed);
    return shareOf(quota, leaf).borrows;
  }

  /** True if the taker's queue takes back its own quota. */
  get isWithinOwnQuota(): boolean {
    return this.#withinQuota.has(this.#asking.takerLeaf);
  }

  /** True if a branch above the taker's queue, below an ancestor, takes back its own quota. Kueue has no such rule. */
  #reclaims(ancestor: Branch | null): boolean {
    const { takerLeaf } = this.#asking;
    for (const branch of upward(takerLeaf)) {
      if (branch === ancestor) return false;
      if (this.#withinQuota.has(branch)) return true;
    }
    return false;
  }

  /** True if a strategy lets a gang of another queue go now. */
  allows(strategy: FairSharingStrategy, gang: RunningGang, leaf: Branch): boolean {
    const { taker, target } = this.#shares(leaf);
    if (compareShares(taker, target) >= 0) return false;
    const wasPreempted = this.#wasPreempted(gang);
    if (strategy === "LESS_THAN_INITIAL_SHARE" && !wasPreempted) return this.#staysBelow(gang, leaf, target);
    if (wasPreempted && !this.#keepsItsQuota(gang, leaf)) return false;
    return compareShares(taker, this.#shareWithout(gang, leaf)) <= 0;
  }

  /** True if the gang or the taker was preempted since the tree has changed. Both may take turns for ever otherwise. */
  #wasPreempted(gang: RunningGang): boolean {
    const { search, taker } = this.#asking;
    return taker.wasPreempted === true || (search.wasPreempted?.(gang) ?? false);
  }

  /** True if a queue still uses its own quota of the pools that the taker needs once a gang of it is gone. */
  #keepsItsQuota({ uses }: RunningGang, leaf: Branch): boolean {
    const { search, taker } = this.#asking;
    return [...taker.needed].every((name) => {
      const pool = leaf.pools.get(name);
      return pool === undefined || !uses.has(name) || search.quota.usedIn(pool) - (uses.get(name) ?? 0) >= pool.nominal;
    });
  }

  /**
   * True if the taker's share stays below another one with all that comes to run of its queue. False if a gang of its
   * queue was preempted and may have the taker preempted: the taker would take for that one.
   */
  #staysBelow(gang: RunningGang, leaf: Branch, target: Share): boolean {
    const { search, taker, takerLeaf } = this.#asking;
    const { quota } = search;
    const others = search.others?.() ?? [];
    if (others.length === 0) return true;
    if (others.some((one) => one.wasPreempted && mayPreempt(takerLeaf, one, taker))) return false;
    return whileGone(quota, [gang], () => {
      chargeOthers(quota, taker, { leaf: takerLeaf, others, freed: gang.uses.keys() });
      return compareShares(this.#shares(leaf).taker, target) < 0;
    });
  }

  /** The shares of the taker's and the target's branches right below the lowest branch that holds both. */
  #shares(leaf: Branch): { readonly taker: Share; readonly target: Share } {
    const { search, takerLeaf } = this.#asking;
    const ancestor = commonAncestor(leaf, takerLeaf);
    return {
      taker: shareOf(search.quota, childTowards(ancestor, takerLeaf)),
      target: shareOf(search.quota, childTowards(ancestor, leaf)),
    };
  }

  #shareWithout(gang: RunningGang, leaf: Branch): Share {
    return whileGone(this.#asking.search.quota, [gang], () => this.#shares(leaf).target);
  }
}

/** True if a gang that waits may have another one of its queue preempted. */
function mayPreempt({ policy }: Branch, { priority, createTimeMs }: WaitingGangs, taker: Taker): boolean {
  const { withinQueue } = policy;
  return withinQueue !== "NEVER" && allows(withinQueue, { priority, createTimeMs }, taker);
}
