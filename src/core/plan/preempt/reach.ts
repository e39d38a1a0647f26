/**
 * Which gangs a search for victims can take at most. This is cheaper than the search, and errs on the side of more: no
 * search takes a gang that is not among them.
 */
import { isWithinQuota } from "../state/branch-use.ts";
import { type Branch, rootOf } from "../state/branches.ts";
import type { QuotaState } from "../state/quota-state.ts";
import { compareShares, type Share, shareOf } from "../state/shares.ts";
import { candidatesOf } from "./candidates.ts";
import { dischargeGangs, type RunningGang, type Taker, type VictimSearch } from "./running-gang.ts";

/** The gangs of its own queue that a taker may have preempted. */
export function ownCandidates(search: VictimSearch, taker: Taker): readonly RunningGang[] {
  const takerLeaf = search.quota.branches.leaf(taker.account.queue);
  return takerLeaf === null ? [] : candidatesOf(search, taker, { leaf: takerLeaf, takerLeaf });
}

type Contender = { readonly branch: Branch; readonly share: Share };

/** The branches below one that may give way, and have the greatest shares: `first`, and the next one. */
type Greatest = { readonly first: Contender | null; readonly second: Contender | null };

/** A branch of the taker, and another one beside it that may give way. */
type Rivals = { readonly taking: Branch; readonly rival: Contender };

const NOBODY: Greatest = { first: null, second: null };

/** Says which queues takers reach, in one state of use. It keeps what it found out. */
export class Reaches {
  readonly #quota: QuotaState;
  readonly #gangsOf: VictimSearch["gangsOf"];
  /** The branches with running gangs that use more than their quotas of a pool, by pool. */
  readonly #borrowing = new Map<string, Map<Branch, boolean>>();
  readonly #greatest = new Map<string, Map<Branch, Greatest>>();

  constructor({ quota, gangsOf }: Pick<VictimSearch, "quota" | "gangsOf">) {
    this.#quota = quota;
    this.#gangsOf = gangsOf;
  }

  /**
   * False: a taker takes nothing of other queues, also once all of its own queue has gone that it may take. The state
   * does not count what it wants.
   */
  reachesOthers(taker: Taker, own: readonly RunningGang[]): boolean {
    const takerLeaf = this.#quota.branches.leaf(taker.account.queue);
    if (takerLeaf === null || takerLeaf.policy.reclaimWithinTree === "NEVER" || takerLeaf.parent === null) return false;
    const pools = [...taker.needed];
    const root = rootOf(takerLeaf);
    // These shares are kept, so they are found before the use counts what the taker wants.
    const rivals = pools.flatMap((pool) => this.#rivalsOf(takerLeaf, pool));
    if (rivals.length === 0 || root.policy.fairSharing === null) return rivals.length > 0;
    const { mark } = this.#quota;
    dischargeGangs(this.#quota, own);
    for (const [pool, amount] of taker.wants) this.#quota.charge(taker.account, pool, amount);
    const reaches =
      isWithinQuota(this.#quota, takerLeaf, pools) ||
      rivals.some(({ taking, rival }) => compareShares(shareOf(this.#quota, taking), rival.share) < 0);
    this.#quota.undo(mark);
    return reaches;
  }

  /** Of each branch above the taker: the one below it with the greatest share, beside the taker's own. */
  #rivalsOf(takerLeaf: Branch, pool: string): readonly Rivals[] {
    const rivals: Rivals[] = [];
    for (let taking = takerLeaf; taking.parent !== null; taking = taking.parent) {
      const { first, second } = this.#greatestBelow(taking.parent, pool);
      const rival = first?.branch === taking ? second : first;
      if (rival !== null) rivals.push({ taking, rival });
    }
    return rivals;
  }

  #greatestBelow(branch: Branch, pool: string): Greatest {
    const ofPool = this.#greatest.get(pool) ?? new Map<Branch, Greatest>();
    this.#greatest.set(pool, ofPool);
    const known = ofPool.get(branch);
    if (known !== undefined) return known;
    let { first, second } = NOBODY;
    for (const child of branch.children) {
      if (!this.#mayGive(child, pool)) continue;
      const contender = { branch: child, share: shareOf(this.#quota, child) };
      if (first === null || compareShares(contender.share, first.share) > 0) [first, second] = [contender, first];
      else if (second === null || compareShares(contender.share, second.share) > 0) second = contender;
    }
    const greatest = { first, second };
    ofPool.set(branch, greatest);
    return greatest;
  }

  /** True if a queue at or below a branch runs gangs and uses more than its quota of a pool. */
  #mayGive(branch: Branch, pool: string): boolean {
    const ofPool = this.#borrowing.get(pool) ?? new Map<Branch, boolean>();
    this.#borrowing.set(pool, ofPool);
    const known = ofPool.get(branch);
    if (known !== undefined) return known;
    const mayGive =
      branch.children.length === 0
        ? this.#gangsOf(branch.name).length > 0 && !isWithinQuota(this.#quota, branch, [pool])
        : branch.children.some((child) => this.#mayGive(child, pool));
    ofPool.set(branch, mayGive);
    return mayGive;
  }
}
