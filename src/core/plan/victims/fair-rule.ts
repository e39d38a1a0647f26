import type { PreemptionReason } from "../../job/preemption.ts";
import type { FairSharingStrategy } from "../model/queue-policy.ts";
import { childTowards, commonAncestor, isWithinQuota } from "../usage/branch-use.ts";
import { type Branch, upward } from "../usage/branches.ts";
import { compareShares, type Share, shareOf } from "../usage/shares.ts";
import { allows } from "./candidates.ts";
import { inLegalOrder } from "./legal-victims.ts";
import { leavesQuotaInUse } from "./own-quota.ts";
import type { Rule } from "./rule.ts";
import {
  chargeGangs,
  hasGrowthIn,
  type Preemptor,
  type RunningGang,
  type Victim,
  type VictimSearch,
  whileGone,
} from "./running-gang.ts";
import type { Taking } from "./taking.ts";
import { chargeOthers, type WaitingGangs } from "./waiting-gangs.ts";

type Asking = {
  readonly search: VictimSearch;
  readonly preemptor: Preemptor;
  readonly preemptorLeaf: Branch;
  readonly strategies: readonly FairSharingStrategy[];
};

/**
 * Who may be preempted by fair sharing, while the state counts the preemptor's requests as used. By each strategy the
 * preemptor's new share must also be below the victim's share before, so that a victim never takes back what it gave.
 * By the strategy of initial shares the preemptor's share counts what else of its queue then fits into what is freed.
 */
export class FairRule implements Rule {
  readonly #asking: Asking;
  /** The branches on the preemptor's path that stay within their quota with it, before anybody is preempted. */
  readonly #withinQuota: ReadonlySet<Branch>;
  readonly #listed: () => readonly RunningGang[];
  readonly #taking: Taking;
  #candidates: readonly RunningGang[] | null = null;

  constructor(asking: Asking, of: { readonly candidates: () => readonly RunningGang[]; readonly taking: Taking }) {
    this.#asking = asking;
    this.#listed = of.candidates;
    this.#taking = of.taking;
    const { search, preemptor, preemptorLeaf } = asking;
    const path = [...upward(preemptorLeaf)];
    this.#withinQuota = new Set(path.filter((branch) => isWithinQuota(search.quota, branch, preemptor.needed)));
  }

  get candidates(): readonly RunningGang[] {
    this.#candidates ??= this.#listed();
    return this.#candidates;
  }

  readonly isOwn = ({ account }: RunningGang): boolean => account.queue === this.#asking.preemptor.account.queue;

  readonly fits = (gone: readonly Victim[]): boolean => this.#taking.fitsWhenAdded(gone);

  /** Otherwise a gang that was preempted takes from a queue whose share is the lower one in the end, and takes back. */
  readonly lasts = (victims: readonly Victim[]): boolean => {
    const { search, preemptor, preemptorLeaf } = this.#asking;
    const { quota } = search;
    const gangs = victims.map(({ gang }) => gang);
    const own = gangs.filter(this.isOwn);
    const others = gangs.filter((gang) => !this.isOwn(gang));
    if (preemptor.wasPreempted !== true || own.length === 0 || others.length === 0) return true;
    const { mark } = quota;
    const again = { leaf: preemptorLeaf, others: this.#waitingAgain(own), freed: preemptorLeaf.pools.keys() };
    chargeOthers(quota, preemptor, again);
    chargeGangs(quota, others);
    const isLegal = inLegalOrder({ quota, rule: this }, others) !== null;
    quota.undo(mark);
    return isLegal;
  };

  /** Victims of the preemptor's queue as they wait once they are gone, in their order. */
  #waitingAgain(own: readonly RunningGang[]): readonly WaitingGangs[] {
    return own
      .filter(({ isGrowth }) => isGrowth !== true)
      .sort((a, b) => b.priority - a.priority || a.createTimeMs - b.createTimeMs)
      .map((gang) => {
        const { priority, createTimeMs } = gang;
        const choices = this.#asking.search.choicesOf?.(gang) ?? [];
        return { choices, count: 1, priority, createTimeMs, wasPreempted: true };
      });
  }

  readonly reasonFor = (gang: RunningGang): PreemptionReason | null => {
    if (this.isOwn(gang)) return "InClusterQueue";
    const { search, preemptorLeaf, strategies } = this.#asking;
    const leaf = search.quota.branches.leaf(gang.account.queue);
    if (leaf === null) return null;
    const ancestor = commonAncestor(leaf, preemptorLeaf);
    if (!this.#isAboveQuota(gang, leaf, ancestor)) return null;
    if (!this.mayLose(gang, leaf)) return null;
    if (this.isWithinOwnQuota) return "InCohortReclamation";
    if (strategies.some((strategy) => this.allows(strategy, gang, leaf))) return "InCohortFairSharing";
    return this.#reclaims(ancestor) ? "InCohortReclamation" : null;
  };

  /**
   * True if the gang's queue borrows, and each branch between it and the ancestor uses more than its quota of a pool
   * that the preemptor needs. In Kueue it suffices that such a branch borrows anything; with several flavors, two
   * branches would then take the same tokens from each other for ever.
   */
  #isAboveQuota(gang: RunningGang, leaf: Branch, ancestor: Branch | null): boolean {
    const { search, preemptor } = this.#asking;
    const { quota } = search;
    for (const branch of upward(leaf.parent ?? leaf)) {
      if (branch === ancestor) break;
      if (isWithinQuota(quota, branch, preemptor.needed)) return false;
    }
    if (hasGrowthIn(gang, this.candidates)) return !isWithinQuota(quota, leaf, preemptor.needed);
    return shareOf(quota, leaf).borrows;
  }

  /**
   * False for a gang whose queue could take back what it owns, although the preemptor's queue stays within its quota:
   * quotas promise more than nodes have. Such owners would take turns for ever.
   */
  mayLose(gang: RunningGang, leaf: Branch): boolean {
    const { wasPreempted, lacksOnlyNodes } = this.#asking.preemptor;
    return wasPreempted !== true || lacksOnlyNodes !== true || this.#leavesQuotaInUse(gang, leaf);
  }

  /** True if the preemptor's queue takes back its own quota. */
  get isWithinOwnQuota(): boolean {
    return this.#withinQuota.has(this.#asking.preemptorLeaf);
  }

  /**
   * True if a branch above the preemptor's queue, below an ancestor, takes back its own quota. Kueue has no such rule.
   */
  #reclaims(ancestor: Branch | null): boolean {
    const { preemptorLeaf } = this.#asking;
    for (const branch of upward(preemptorLeaf)) {
      if (branch === ancestor) return false;
      if (this.#withinQuota.has(branch)) return true;
    }
    return false;
  }

  /** True if a strategy lets a gang of another queue go now. */
  allows(strategy: FairSharingStrategy, gang: RunningGang, leaf: Branch): boolean {
    const { preemptor, target } = this.#shares(leaf);
    if (compareShares(preemptor, target) >= 0) return false;
    const wasPreempted = this.#wasPreempted(gang);
    if (strategy === "LESS_THAN_INITIAL_SHARE" && !wasPreempted) return this.#staysBelow(gang, leaf, target);
    if (wasPreempted && !this.#leavesQuotaInUse(gang, leaf)) return false;
    return compareShares(preemptor, this.#shareWithout(gang, leaf)) <= 0;
  }

  /**
   * True if the gang or the preemptor was preempted since the tree has changed. Both may take turns for ever otherwise.
   */
  #wasPreempted(gang: RunningGang): boolean {
    const { search, preemptor } = this.#asking;
    return preemptor.wasPreempted === true || (search.wasPreempted?.(gang) ?? false);
  }

  #leavesQuotaInUse(gang: RunningGang, leaf: Branch): boolean {
    const { search, preemptor, preemptorLeaf } = this.#asking;
    return leavesQuotaInUse(search, preemptor, { gang, leaf, ancestor: commonAncestor(leaf, preemptorLeaf) });
  }

  /**
   * True if the preemptor's share stays below another one with all that comes to run of its queue. False if a gang of
   * its queue was preempted and may have the preemptor preempted: the preemptor would take for that one.
   */
  #staysBelow(gang: RunningGang, leaf: Branch, target: Share): boolean {
    const { search, preemptor, preemptorLeaf } = this.#asking;
    const { quota } = search;
    const others = search.others?.() ?? [];
    if (others.length === 0) return true;
    if (others.some((one) => one.wasPreempted && mayPreempt(preemptorLeaf, one, preemptor))) return false;
    return whileGone(quota, [gang], () => {
      chargeOthers(quota, preemptor, { leaf: preemptorLeaf, others, freed: gang.uses.keys() });
      return compareShares(this.#shares(leaf).preemptor, target) < 0;
    });
  }

  /** The shares of the preemptor's and the target's branches right below the lowest branch that holds both. */
  #shares(leaf: Branch): { readonly preemptor: Share; readonly target: Share } {
    const { search, preemptorLeaf } = this.#asking;
    const ancestor = commonAncestor(leaf, preemptorLeaf);
    return {
      preemptor: shareOf(search.quota, childTowards(ancestor, preemptorLeaf)),
      target: shareOf(search.quota, childTowards(ancestor, leaf)),
    };
  }

  #shareWithout(gang: RunningGang, leaf: Branch): Share {
    return whileGone(this.#asking.search.quota, [gang], () => this.#shares(leaf).target);
  }
}

/** True if a gang that waits may have another one of its queue preempted. */
function mayPreempt({ policy }: Branch, { priority, createTimeMs }: WaitingGangs, preemptor: Preemptor): boolean {
  const { withinQueue } = policy;
  return withinQueue !== "NEVER" && allows(withinQueue, { priority, createTimeMs }, preemptor);
}
