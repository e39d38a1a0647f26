import { FAIR_SHARING_STRATEGIES, type FairSharingStrategy } from "../queue-policy.ts";
import { childTowards, commonAncestor, isWithinQuota } from "../state/branch-use.ts";
import { type Branch, upward } from "../state/branches.ts";
import { compareShares, type Share, shareOf } from "../state/shares.ts";
import { candidatesOf, leavesFor } from "./candidates.ts";
import { candidateOrder, turnOf } from "./order.ts";
import { dischargeGangs, type RunningGang, type Taker, type Victim, type VictimSearch } from "./running-gang.ts";
import { Taking } from "./taking.ts";
import { TargetQueues } from "./target-queues.ts";

/**
 * The gangs that must give way for a taker, by Kueue's fair sharing (`preemption.go`, `fairsharing`). Empty: it does
 * not fit, whoever gives way. By either strategy the taker's new share must also be below the victim's share before, so
 * that a victim never takes back what it gave.
 */
export function fairVictims(
  search: VictimSearch,
  taker: Taker,
  of: { readonly takerLeaf: Branch; readonly strategies: readonly FairSharingStrategy[] },
): readonly Victim[] {
  const { quota } = search;
  const { mark } = quota;
  const all = candidatesByLeaf(search, taker, of.takerLeaf);
  const taking = new Taking(search, taker, of.takerLeaf);
  for (const [pool, amount] of taker.wants) quota.charge(taker.account, pool, amount);
  const fair = new FairSearch({ search, taker, takerLeaf: of.takerLeaf, taking });
  const hasGrowth = [...all.values()].some((gangs) => gangs.some(({ isGrowth }) => isGrowth === true));
  const candidates = withinReach(search, taker, { all, takerLeaf: of.takerLeaf });
  if (candidates.size === 0) {
    quota.undo(mark);
    return [];
  }
  const [first, second] = of.strategies.length === 0 ? FAIR_SHARING_STRATEGIES : of.strategies;
  const found =
    (search.mayFitWithout?.([...candidates.values()].flat()) ?? true) &&
    ([1, 2].some((turn) => fair.takeBy(first as FairSharingStrategy, upTo(candidates, { turn, hasGrowth }))) ||
      (second !== undefined && fair.takeKept()));
  for (const [pool, amount] of taker.wants) quota.discharge(taker.account, pool, amount);
  const victims = found ? taking.fillBack({ borrowing: true }) : [];
  quota.undo(mark);
  return victims;
}

type Candidates = ReadonlyMap<Branch, readonly RunningGang[]>;

/** In the first turn the growth of elastic gangs, and gangs that give way already; in the second one the others. */
function upTo(candidates: Candidates, { turn, hasGrowth }: { turn: number; hasGrowth: boolean }): Candidates {
  const isNow = (gang: RunningGang) => Math.max(1, turnOf(gang)) === turn;
  if (!hasGrowth) return turn === 1 ? new Map() : candidates;
  return new Map([...candidates].map(([leaf, gangs]) => [leaf, gangs.filter(isNow)]));
}

/** Those of the taker's own queue, and of every queue of the tree that borrows of a pool that the taker needs. */
function candidatesByLeaf(search: VictimSearch, taker: Taker, takerLeaf: Branch): Candidates {
  const order = candidateOrder(taker.account.queue, search.prefer);
  const byLeaf = new Map<Branch, readonly RunningGang[]>();
  for (const leaf of leavesFor(search, takerLeaf, taker)) {
    if (search.gangsOf(leaf.name).length === 0) continue;
    if (leaf !== takerLeaf && isWithinQuota(search.quota, leaf, taker.needed)) continue;
    byLeaf.set(leaf, [...candidatesOf(search, taker, { leaf, takerLeaf })].sort(order));
  }
  return byLeaf;
}

/**
 * Leaves out the queues that surely give nothing, whatever the others give: the shares of victims only fall, so those
 * that are not above the taker's share do not come above the least share that the taker can have.
 */
function withinReach(
  { quota }: VictimSearch,
  taker: Taker,
  { all, takerLeaf }: { readonly all: Candidates; readonly takerLeaf: Branch },
): Candidates {
  const { mark } = quota;
  const reached = new Map<Branch, readonly RunningGang[]>();
  const reach = (leaf: Branch) => {
    const gangs = all.get(leaf) ?? [];
    if (gangs.length > 0) reached.set(leaf, gangs);
    dischargeGangs(quota, gangs);
  };
  reach(takerLeaf);
  const takesAny = isWithinQuota(quota, takerLeaf, taker.needed);
  const others = [...all.keys()].filter((leaf) => leaf !== takerLeaf);
  const byAncestor = Map.groupBy(others, (leaf) => commonAncestor(leaf, takerLeaf));
  for (const branch of takesAny ? [] : upward(takerLeaf)) {
    const least = shareOf(quota, branch);
    const rivals = Map.groupBy(byAncestor.get(branch.parent) ?? [], (leaf) => childTowards(branch.parent, leaf));
    const above = [...rivals].filter(([rival]) => compareShares(least, shareOf(quota, rival)) < 0);
    for (const [, leaves] of above) leaves.forEach(reach);
  }
  quota.undo(mark);
  return takesAny ? all : reached;
}

/** One search while the state counts the taker's wants as used. */
class FairSearch {
  readonly #search: VictimSearch;
  readonly #taker: Taker;
  readonly #takerLeaf: Branch;
  readonly #taking: Taking;
  /** The candidates that the first strategy refused. */
  readonly #kept = new Map<Branch, RunningGang[]>();

  constructor(of: {
    readonly search: VictimSearch;
    readonly taker: Taker;
    readonly takerLeaf: Branch;
    readonly taking: Taking;
  }) {
    this.#search = of.search;
    this.#taker = of.taker;
    this.#takerLeaf = of.takerLeaf;
    this.#taking = of.taking;
  }

  /** Takes candidates by the first strategy until the taker fits. False: it does not. */
  takeBy(strategy: FairSharingStrategy, candidates: Candidates): boolean {
    const targets = this.#targets(candidates);
    const withinQuota = isWithinQuota(this.#search.quota, this.#takerLeaf, this.#taker.needed);
    for (let leaf = targets.next(); leaf !== null; leaf = targets.next()) {
      if (leaf === this.#takerLeaf) this.#taking.take(targets.shift(leaf) as RunningGang, "InClusterQueue");
      else if (withinQuota) this.#taking.take(targets.shift(leaf) as RunningGang, "InCohortReclamation");
      else if (!this.#takeOne({ targets, leaf }, strategy)) continue;
      if (this.#taking.fitsWhenAdded()) return true;
    }
    return false;
  }

  /** Takes of each queue at most one candidate that the first strategy refused, if the second one allows it. */
  takeKept(): boolean {
    const targets = this.#targets(this.#kept);
    for (let leaf = targets.next(); leaf !== null; leaf = targets.next()) {
      const { taker, target } = this.#shares(leaf);
      if (compareShares(taker, target) < 0) {
        this.#taking.take(targets.shift(leaf) as RunningGang, "InCohortFairSharing");
        if (this.#taking.fitsWhenAdded()) return true;
      }
      targets.drop(leaf);
    }
    return false;
  }

  /** Takes the first candidate of a leaf that the strategy allows, and keeps those before it. False: it allows none. */
  #takeOne(
    { targets, leaf }: { readonly targets: TargetQueues; readonly leaf: Branch },
    strategy: FairSharingStrategy,
  ): boolean {
    const { taker, target } = this.#shares(leaf);
    const kept = this.#kept.get(leaf) ?? [];
    this.#kept.set(leaf, kept);
    const isBelow = compareShares(taker, target) < 0;
    for (let gang = targets.shift(leaf); gang !== null; gang = targets.shift(leaf)) {
      if (
        isBelow &&
        (strategy === "LESS_THAN_INITIAL_SHARE" || compareShares(taker, this.#shareWithout(gang, leaf)) <= 0)
      ) {
        this.#taking.take(gang, "InCohortFairSharing");
        return true;
      }
      kept.push(gang);
    }
    return false;
  }

  /** The shares of the taker's and the target's branches right below the lowest branch that holds both. */
  #shares(leaf: Branch): { readonly taker: Share; readonly target: Share } {
    const ancestor = commonAncestor(leaf, this.#takerLeaf);
    const { quota } = this.#search;
    return {
      taker: shareOf(quota, childTowards(ancestor, this.#takerLeaf)),
      target: shareOf(quota, childTowards(ancestor, leaf)),
    };
  }

  #shareWithout(gang: RunningGang, leaf: Branch): Share {
    const { quota } = this.#search;
    const { mark } = quota;
    for (const [pool, amount] of gang.uses) quota.discharge(gang.account, pool, amount);
    const { target } = this.#shares(leaf);
    quota.undo(mark);
    return target;
  }

  #targets(byLeaf: Candidates): TargetQueues {
    const order = candidateOrder(this.#taker.account.queue, this.#search.prefer);
    return new TargetQueues(this.#search.quota, this.#takerLeaf, { byLeaf, order });
  }
}
