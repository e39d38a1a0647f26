/**
 * Which gangs a search for victims can take at most. This is cheaper than the search, and errs on the side of more: no
 * search takes a gang that is not among them.
 */
import { childTowards, commonAncestor, isWithinQuota } from "../usage/branch-use.ts";
import { type Branch, rootOf, upward } from "../usage/branches.ts";
import type { QuotaState } from "../usage/quota-state.ts";
import { compareShares, shareOf } from "../usage/shares.ts";
import { allows, candidatesOf, leavesFor, usesOne } from "./candidates.ts";
import { chargeRequests, dischargeGangs, type Preemptor, type RunningGang, type VictimSearch } from "./running-gang.ts";
import type { Candidates } from "./target-queues.ts";

/** The gangs of its own queue that a preemptor may have preempted. */
export function ownCandidates(search: VictimSearch, preemptor: Preemptor): readonly RunningGang[] {
  const preemptorLeaf = search.quota.branches.leaf(preemptor.account.queue);
  return preemptorLeaf === null ? [] : candidatesOf(search, preemptor, { leaf: preemptorLeaf, preemptorLeaf });
}

type Borrowers = ReadonlyMap<Branch, readonly RunningGang[]>;

/** Says which gangs preemptors reach, in one state of use. It keeps what it found out. */
export class Reaches {
  readonly #search: Pick<VictimSearch, "quota" | "gangsOf" | "leavesWith">;
  /** The gangs of queues that use more than their quota of some pools, by the names of these. */
  readonly #borrowers = new Map<Branch, Map<string, Borrowers>>();

  constructor(search: Pick<VictimSearch, "quota" | "gangsOf" | "leavesWith">) {
    this.#search = search;
  }

  /**
   * The gangs that a search for a preemptor can take at most: its own ones, and those of other queues. The state does
   * not count what it requests.
   */
  reached(preemptor: Preemptor, own: readonly RunningGang[]): readonly RunningGang[] {
    const { quota } = this.#search;
    const preemptorLeaf = quota.branches.leaf(preemptor.account.queue);
    if (preemptorLeaf === null || preemptorLeaf.parent === null) return own;
    const { reclaimWithinTree } = preemptorLeaf.policy;
    if (reclaimWithinTree === "NEVER") return own;
    const root = rootOf(preemptorLeaf);
    const borrowers = this.#borrowersIn(root, preemptor.needed);
    const isAllowed = (gang: RunningGang) => allows(reclaimWithinTree, preemptor, gang);
    const gangs = new Map<Branch, readonly RunningGang[]>();
    for (const [leaf, all] of borrowers) gangs.set(leaf, reclaimWithinTree === "ANY" ? all : all.filter(isAllowed));
    gangs.set(preemptorLeaf, own);
    const of = (leaf: Branch) => gangs.get(leaf) ?? [];
    const leaves = [...gangs.keys()];
    if (leaves.length === 1 || root.policy.fairSharing === null) return leaves.flatMap(of);
    return withinReach(quota, preemptor, { preemptorLeaf, candidates: { leaves, of } }).flatMap(of);
  }

  #borrowersIn(root: Branch, pools: ReadonlySet<string>): Borrowers {
    const inTree = this.#borrowers.get(root) ?? new Map<string, Borrowers>();
    this.#borrowers.set(root, inTree);
    const key = [...pools].join("\n");
    const known = inTree.get(key) ?? this.#findBorrowers(root, pools);
    inTree.set(key, known);
    return known;
  }

  #findBorrowers(root: Branch, pools: ReadonlySet<string>): Borrowers {
    const { quota, gangsOf } = this.#search;
    const borrowers = new Map<Branch, readonly RunningGang[]>();
    for (const leaf of leavesFor(this.#search, root, pools)) {
      if (isWithinQuota(quota, leaf, pools)) continue;
      const gangs = gangsOf(leaf.name).filter((gang) => usesOne(gang, pools));
      if (gangs.length > 0) borrowers.set(leaf, gangs);
    }
    return borrowers;
  }
}

/**
 * Leaves out the queues that surely give nothing by fair sharing, whatever the others give: the shares of victims only
 * fall, so those that are not above the preemptor's share do not come above the least share that the preemptor can
 * have. A branch that takes back its own quota may take from every queue outside it.
 */
export function withinReach(
  quota: QuotaState,
  preemptor: Preemptor,
  { preemptorLeaf, candidates }: { readonly preemptorLeaf: Branch; readonly candidates: Candidates },
): readonly Branch[] {
  const { mark } = quota;
  const leaves = candidates.leaves.filter((leaf) => candidates.of(leaf).length > 0);
  chargeRequests(quota, preemptor);
  const reclaims = new Set(
    [...upward(preemptorLeaf)].filter((branch) => isWithinQuota(quota, branch, preemptor.needed)),
  );
  const reached: Branch[] = [];
  const reach = (leaf: Branch) => {
    reached.push(leaf);
    dischargeGangs(quota, candidates.of(leaf));
  };
  if (leaves.includes(preemptorLeaf)) reach(preemptorLeaf);
  const takesAny = reclaims.has(preemptorLeaf);
  const others = leaves.filter((leaf) => leaf !== preemptorLeaf);
  const byAncestor = Map.groupBy(others, (leaf) => commonAncestor(leaf, preemptorLeaf));
  let isOwn = false;
  for (const branch of takesAny ? [] : upward(preemptorLeaf)) {
    isOwn ||= reclaims.has(branch);
    const least = shareOf(quota, branch);
    const rivals = Map.groupBy(byAncestor.get(branch.parent) ?? [], (leaf) => childTowards(branch.parent, leaf));
    const above = [...rivals].filter(([rival]) => isOwn || compareShares(least, shareOf(quota, rival)) < 0);
    for (const [, leaves] of above) leaves.forEach(reach);
  }
  quota.undo(mark);
  return takesAny ? leaves : reached;
}
