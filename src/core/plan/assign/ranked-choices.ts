import { type FlavorChoices, flavorsByResource } from "../fit/flavor-choices.ts";
import { apartIn } from "../fit/flavors-apart.ts";
import { chooseApart, commonFlavors, type ResourceFlavors, slotsOf } from "../fit/role-slots.ts";
import { DEFAULT_POLICY } from "../model/queue-policy.ts";
import type { PlanQueue } from "../model/snapshot.ts";
import type { Search } from "../preempt/find-victims.ts";
import type { Round } from "../preempt/round.ts";
import { type SizedAsk, unitsOf } from "../queues/ask-shape.ts";
import type { GangClass, GangRecord } from "../queues/records.ts";
import { lowestFit } from "../usage/branch-use.ts";
import { type Branch, type BranchPool, rootOf } from "../usage/branches.ts";
import { whileGone } from "../victims/running-gang.ts";
import { rankedByRole } from "./ranked-by-role.ts";
import {
  combined,
  FITS,
  inOrder,
  type OfResource,
  PREEMPTS,
  type RankedChoice,
  type RankedPick,
  RECLAIMS,
} from "./ranked-order.ts";

type Of = {
  readonly round: Round;
  readonly search: Search;
  readonly queue: PlanQueue;
  readonly sized: SizedAsk;
};

/** True if others may be preempted for a gang of a queue. Undefined: there is no such queue. */
export function mayPreempt(queue: PlanQueue | undefined, { facts }: Pick<GangRecord, "facts">): boolean {
  if (facts.neverPreempts === true) return false;
  const policy = queue?.policy ?? DEFAULT_POLICY;
  return policy.withinQueue !== "NEVER" || policy.reclaimWithinTree !== "NEVER";
}

/**
 * The flavors of a gang whose queue may have others preempted, the best first, by Kueue's rules (`flavorassigner.go`):
 * the first flavor that ends the search, else those that need no preemption, those that reclaim, those that preempt.
 * Resources whose flavors exclude each other on nodes are chosen together. If a gang requests one resource by
 * flavor, a flavor is looked up only once those before it were refused.
 */
export function rankedChoices(gangClass: GangClass, gang: GangRecord, of: Of): Iterable<RankedChoice> {
  const { queue, sized } = of;
  const { fleet } = of.round;
  const leaf = fleet.quota.branches.leaf(gangClass.gangQueue.name);
  if (leaf === null) return [];
  const { shape } = gangClass;
  const byResource = flavorsByResource(gangClass, queue, fleet.resources);
  const asking = { gangClass, gang, leaf, of, isAlone: byResource.length === 1 };
  if (!chooseApart(shape, byResource, fleet.resources)) return rankedTogether(asking, byResource);
  const slots = slotsOf(shape, byResource, fleet);
  const apart = { ...asking, isAlone: false };
  return rankedByRole(slots, {
    shape,
    sized,
    policy: leaf.policy,
    excludes: fleet.excludes,
    inOneCluster: fleet.inOneCluster,
    width: byResource.length,
    choiceOf: (flavor, need) => rankedChoiceOf(apart, flavor, need),
    together: () => rankedTogether(asking, commonFlavors(byResource, slots) ?? []),
  });
}

/** Flavors that all replica types get. */
function rankedTogether(asking: Asking, byResource: readonly ResourceFlavors[]): Iterable<RankedPick> {
  const { gangClass, leaf, of } = asking;
  const { fleet } = of.round;
  const choices: OfResource[] = [];
  for (const { resource, flavors } of byResource) {
    const need = unitsOf(of.sized, fleet.resources)[resource] ?? 0;
    choices.push({ resource, flavors, choices: rankedChoicesOf(asking, flavors, need) });
  }
  const [first] = choices;
  return first !== undefined && choices.length === 1
    ? inOrder(first.choices, leaf.policy)
    : combined(choices, { policy: leaf.policy, areApart: apartIn(gangClass.shape, fleet.excludes) });
}

/** A gang that asks for flavors in a leaf. `isAlone`: it requests no other resource by flavor. */
type Asking = {
  readonly gangClass: GangClass;
  readonly gang: GangRecord;
  readonly leaf: Branch;
  readonly of: Of;
  readonly isAlone: boolean;
};

/** How a gang gets each of some flavors. Omits those that it does not get. */
function* rankedChoicesOf(asking: Asking, flavors: readonly string[], need: number): Generator<RankedPick> {
  for (const flavor of flavors) {
    const choice = rankedChoiceOf(asking, flavor, need);
    if (choice !== null) yield choice;
  }
}

function rankedChoiceOf(asking: Asking, flavor: string, need: number): RankedPick | null {
  const { gangClass, leaf, of } = asking;
  const { quota } = of.round.fleet;
  const pool = leaf.pools.get(flavor);
  const flavors = [flavor];
  if (quota.admits(gangClass.account, flavor, { need, priority: gangClass.priority })) {
    return { flavors, mode: FITS, level: pool === undefined ? 0 : lowestFit(quota, pool, need).height };
  }
  if (
    of.search === "none" ||
    pool === undefined ||
    need > pool.potential ||
    !mayTryPreempting(of, leaf, { pool, need })
  )
    return null;
  if (asking.isAlone && findsNobody(asking, flavor, need)) return null;
  const victims = of.round.victims.forPool(asking, { pool: flavor, need }, of.search);
  if (victims === null) return null;
  const gangs = victims.map(({ gang }) => gang);
  const level = whileGone(quota, gangs, () => lowestFit(quota, pool, need).height);
  const isOwn = victims.some(({ gang }) => gang.account.queue === gangClass.gangQueue.name);
  return { flavors, mode: isOwn ? PREEMPTS : RECLAIMS, level };
}

/** True if victims would not free capacity for a gang that requests one flavor. */
function findsNobody({ gangClass, gang, of }: Asking, flavor: string, need: number): boolean {
  const request = of.round.requestOf(gangClass, of.sized, [flavor]);
  return of.round.victims.findsNobody({ gangClass, gang, request, requested: new Map([[flavor, need]]) });
}

/**
 * Preempting is tried within the own quota, in a part of the tree that has the capacity, or where borrowing allows it.
 */
function mayTryPreempting(
  { round }: Of,
  leaf: Branch,
  { pool, need }: { readonly pool: BranchPool; readonly need: number },
): boolean {
  const { borrowWithin, reclaimWithinTree } = leaf.policy;
  if (pool.nominal >= need || lowestFit(round.fleet.quota, pool, need).belowRoot) return true;
  if (borrowWithin.policy !== "NEVER") return true;
  return rootOf(leaf).policy.fairSharing !== null && reclaimWithinTree !== "NEVER";
}

/** True if flavors of several resources or replica types are compared by how far a gang borrows with all of them. */
export function isRanked(
  { policy = DEFAULT_POLICY }: PlanQueue,
  { byRole, choices: [first = [], ...others] }: FlavorChoices,
): boolean {
  return (byRole || first.length > 1) && others.length > 0 && policy.fungibility.whenCanBorrow === "TRY_NEXT_FLAVOR";
}
