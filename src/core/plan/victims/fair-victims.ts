import { FAIR_SHARING_STRATEGIES, type FairSharingStrategy } from "../model/queue-policy.ts";
import { commonAncestor, isWithinQuota } from "../usage/branch-use.ts";
import { type Branch, rootOf } from "../usage/branches.ts";
import type { QuotaState } from "../usage/quota-state.ts";
import { candidatesOf, leavesFor } from "./candidates.ts";
import { FairRule } from "./fair-rule.ts";
import { FEW_CANDIDATES_MAX, inLegalOrder, legalVictims } from "./legal-victims.ts";
import { candidateOrder, turnOf } from "./order.ts";
import { withinReach } from "./reach.ts";
import {
  chargeRequests,
  type Preemptor,
  type RunningGang,
  type Victim,
  type VictimSearch,
  whileGone,
} from "./running-gang.ts";
import { Taking } from "./taking.ts";
import { type Candidates, TargetQueues } from "./target-queues.ts";

/** So many queues are asked before a search that has found too few gangs looks whether it may find enough at all. */
const QUICK_STEPS = 4;

/**
 * The gangs that must be preempted for a preemptor, by Kueue's fair sharing (`preemption.go`, `fairsharing`). Empty: it
 * does not fit, whoever is preempted. By either strategy the preemptor's new share must also be below the victim's
 * share before, so that a victim never takes back what it gave.
 */
export function fairVictims(
  search: VictimSearch,
  preemptor: Preemptor,
  of: { readonly preemptorLeaf: Branch; readonly strategies: readonly FairSharingStrategy[] },
): readonly Victim[] {
  const all = new CandidateLists(search, preemptor, of.preemptorLeaf);
  const hasGrowth = all.leaves.some((leaf) => isAnyGrowth(search.gangsOf(leaf.name)) && isAnyGrowth(all.of(leaf)));
  const asking = { ...of, search, preemptor, hasGrowth, strategies: strategiesFor(preemptor, of.strategies) };
  // Most preemptors need few victims. Only for the others the bounds are worth their time.
  const quick = attempt(asking, all, QUICK_STEPS);
  if (quick !== null) return quick;
  const reached = withinReach(search.quota, preemptor, { preemptorLeaf: of.preemptorLeaf, candidates: all });
  const mayFit = search.mayFitWithout ?? (() => true);
  if (reached.length === 0 || !mayFit(reached.flatMap((leaf) => all.of(leaf)))) return [];
  return attempt(asking, { leaves: reached, of: all.of }, Number.POSITIVE_INFINITY) ?? [];
}

/** True if these victims can be taken one after another, each allowed at that moment. */
export function areFairlyLegal(
  search: VictimSearch,
  preemptor: Preemptor,
  of: {
    readonly preemptorLeaf: Branch;
    readonly strategies: readonly FairSharingStrategy[];
    readonly victims: readonly Victim[];
  },
): boolean {
  const { quota } = search;
  const { mark } = quota;
  const gangs = gangsOf(of.victims);
  const taking = new Taking(search, preemptor, of.preemptorLeaf);
  chargeRequests(quota, preemptor);
  const asking = { ...of, search, preemptor, strategies: strategiesFor(preemptor, of.strategies) };
  const rule = new FairRule(asking, { candidates: () => gangs, taking });
  const isLegal = areInLegalOrder({ quota, rule }, of.victims);
  quota.undo(mark);
  return isLegal;
}

/** In the order in which they are tried. */
function strategiesFor({ wasPreempted }: Preemptor, strategies: readonly FairSharingStrategy[]) {
  if (wasPreempted === true) return FINAL_SHARE_ALONE;
  return strategies.length === 0 ? FAIR_SHARING_STRATEGIES : strategies;
}

const FINAL_SHARE_ALONE: readonly FairSharingStrategy[] = ["LESS_THAN_OR_EQUAL_TO_FINAL_SHARE"];

type Asking = {
  readonly search: VictimSearch;
  readonly preemptor: Preemptor;
  readonly preemptorLeaf: Branch;
  readonly strategies: readonly FairSharingStrategy[];
  readonly hasGrowth: boolean;
};

/** The victims among some candidates. Empty: they do not suffice. Null: it was cut off after so many steps. */
function attempt(asking: Asking, candidates: Candidates, stepsMax: number): readonly Victim[] | null {
  const { search, preemptor, preemptorLeaf, strategies, hasGrowth } = asking;
  const { quota } = search;
  const { mark } = quota;
  const taking = new Taking(search, preemptor, preemptorLeaf);
  chargeRequests(quota, preemptor);
  const rule = new FairRule(asking, { candidates: () => allOf(candidates, asking), taking });
  const { mark: charged } = quota;
  const fair = new FairSearch({ search, preemptor, preemptorLeaf, taking, rule, stepsMax });
  const [first, second] = strategies;
  const found =
    [1, 2].some((turn) => fair.takeBy(first as FairSharingStrategy, upTo(candidates, { turn, hasGrowth }))) ||
    (second !== undefined && fair.takeKept());
  if (!found && fair.isCut) {
    quota.undo(mark);
    return null;
  }
  for (const [pool, amount] of preemptor.requested) quota.discharge(preemptor.account, pool, amount);
  const kueue = found ? taking.fillBack({ borrowing: true }) : [];
  quota.undo(charged);
  const isLegal = found && areInLegalOrder({ quota, rule }, kueue);
  const mayFindOthers = !isLegal && (found || mayFind(candidates, preemptorLeaf));
  const victims = mayFindOthers ? (legalVictims({ quota, rule }) ?? []) : kueue;
  quota.undo(mark);
  return victims;
}

/** True if victims can be taken one after another, and stay legal. The state counts them. */
function areInLegalOrder(of: { readonly quota: QuotaState; readonly rule: FairRule }, victims: readonly Victim[]) {
  const gangs = gangsOf(victims);
  return inLegalOrder(of, gangs) !== null && whileGone(of.quota, gangs, () => of.rule.lasts(victims));
}

function gangsOf(victims: readonly Victim[]): readonly RunningGang[] {
  return victims.map(({ gang }) => gang);
}

/**
 * False: what Kueue's search does not find, another one does not find either. A preemptor's share falls only with gangs
 * on its own side of the tree, and without that no gang that was refused is allowed later. Of few, all sets are tried.
 */
function mayFind({ leaves, of }: Candidates, preemptorLeaf: Branch): boolean {
  const root = rootOf(preemptorLeaf);
  let count = 0;
  for (const leaf of leaves) {
    const { length } = of(leaf);
    if (length > 0 && (leaf === preemptorLeaf || commonAncestor(leaf, preemptorLeaf) !== root)) return true;
    count += length;
  }
  return count > 0 && count <= FEW_CANDIDATES_MAX;
}

/** All candidates in Kueue's order. */
function allOf({ leaves, of }: Candidates, { preemptor, search }: Asking): readonly RunningGang[] {
  return leaves.flatMap((leaf) => of(leaf)).sort(candidateOrder(preemptor.account.queue, search.prefer));
}

function isAnyGrowth(gangs: readonly RunningGang[]): boolean {
  return gangs.some(({ isGrowth }) => isGrowth === true);
}

/**
 * In the first turn the growth of elastic gangs, and gangs that are being preempted already; in the second one the
 * others.
 */
function upTo(candidates: Candidates, { turn, hasGrowth }: { turn: number; hasGrowth: boolean }): Candidates {
  const isNow = (gang: RunningGang) => Math.max(1, turnOf(gang)) === turn;
  if (!hasGrowth) return turn === 1 ? { leaves: [], of: () => [] } : candidates;
  return { leaves: candidates.leaves, of: (leaf) => candidates.of(leaf).filter(isNow) };
}

/**
 * Those of the preemptor's own queue, and of every queue of the tree that borrows of a pool that the preemptor needs.
 * They are looked up as they are asked for, before any of their queue is taken.
 */
class CandidateLists implements Candidates {
  readonly leaves: readonly Branch[];
  readonly #search: VictimSearch;
  readonly #preemptor: Preemptor;
  readonly #preemptorLeaf: Branch;
  readonly #order: (a: RunningGang, b: RunningGang) => number;
  readonly #known = new Map<Branch, readonly RunningGang[]>();

  constructor(search: VictimSearch, preemptor: Preemptor, preemptorLeaf: Branch) {
    this.leaves = leavesFor(search, rootOf(preemptorLeaf), preemptor.needed);
    this.#search = search;
    this.#preemptor = preemptor;
    this.#preemptorLeaf = preemptorLeaf;
    this.#order = candidateOrder(preemptor.account.queue, search.prefer);
  }

  readonly of = (leaf: Branch): readonly RunningGang[] => {
    const known = this.#known.get(leaf) ?? this.#find(leaf);
    this.#known.set(leaf, known);
    return known;
  };

  #find(leaf: Branch): readonly RunningGang[] {
    const { quota, gangsOf } = this.#search;
    const preemptorLeaf = this.#preemptorLeaf;
    if (gangsOf(leaf.name).length === 0) return [];
    if (leaf !== preemptorLeaf && isWithinQuota(quota, leaf, this.#preemptor.needed)) return [];
    return [...candidatesOf(this.#search, this.#preemptor, { leaf, preemptorLeaf })].sort(this.#order);
  }
}

/** One search while the state counts the preemptor's requests as used. */
class FairSearch {
  readonly #search: VictimSearch;
  readonly #preemptor: Preemptor;
  readonly #preemptorLeaf: Branch;
  readonly #taking: Taking;
  readonly #rule: FairRule;
  #stepsLeft: number;
  /** The candidates that the first strategy refused. */
  readonly #kept = new Map<Branch, RunningGang[]>();

  constructor(of: {
    readonly search: VictimSearch;
    readonly preemptor: Preemptor;
    readonly preemptorLeaf: Branch;
    readonly taking: Taking;
    readonly rule: FairRule;
    readonly stepsMax: number;
  }) {
    this.#search = of.search;
    this.#preemptor = of.preemptor;
    this.#preemptorLeaf = of.preemptorLeaf;
    this.#taking = of.taking;
    this.#rule = of.rule;
    this.#stepsLeft = of.stepsMax;
  }

  /** True: it ended before all candidates were looked at. */
  get isCut(): boolean {
    return this.#stepsLeft < 0;
  }

  /** The queue that is preempted next. Null: none is left, or no step is. */
  #next(targets: TargetQueues): Branch | null {
    this.#stepsLeft -= 1;
    return this.isCut ? null : targets.next();
  }

  /** Takes candidates by the first strategy until the preemptor fits. False: it does not. */
  takeBy(strategy: FairSharingStrategy, candidates: Candidates): boolean {
    const targets = this.#targets(candidates);
    for (let leaf = this.#next(targets); leaf !== null; leaf = this.#next(targets)) {
      if (leaf === this.#preemptorLeaf) this.#taking.take(targets.shift(leaf) as RunningGang, "InClusterQueue");
      else if (this.#rule.isWithinOwnQuota) {
        const gang = targets.shift(leaf) as RunningGang;
        if (!this.#rule.mayLose(gang, leaf)) continue;
        this.#taking.take(gang, "InCohortReclamation");
      } else if (!this.#takeOne({ targets, leaf }, strategy)) continue;
      if (this.#taking.fitsWhenAdded()) return true;
    }
    return false;
  }

  /** Takes of each queue at most one candidate that the first strategy refused, if the second one allows it. */
  takeKept(): boolean {
    const targets = this.#targets({ leaves: [...this.#kept.keys()], of: (leaf) => this.#kept.get(leaf) ?? [] });
    for (let leaf = this.#next(targets); leaf !== null; leaf = this.#next(targets)) {
      const gang = targets.shift(leaf) as RunningGang;
      if (this.#rule.allows("LESS_THAN_INITIAL_SHARE", gang, leaf)) {
        this.#taking.take(gang, "InCohortFairSharing");
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
    const kept = this.#kept.get(leaf) ?? [];
    this.#kept.set(leaf, kept);
    for (let gang = targets.shift(leaf); gang !== null; gang = targets.shift(leaf)) {
      if (this.#rule.allows(strategy, gang, leaf)) {
        this.#taking.take(gang, "InCohortFairSharing");
        return true;
      }
      kept.push(gang);
    }
    return false;
  }

  #targets(candidates: Candidates): TargetQueues {
    const order = candidateOrder(this.#preemptor.account.queue, this.#search.prefer);
    return new TargetQueues(this.#search.quota, this.#preemptorLeaf, { candidates, order });
  }
}
