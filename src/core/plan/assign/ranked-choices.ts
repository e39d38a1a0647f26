import { type FlavorChoices, type Flavors, flavorsByResource } from "../fit/flavor-choices.ts";
import { apartIn } from "../fit/flavors-apart.ts";
import { CHOICES_MAX } from "../model/flavors.ts";
import { DEFAULT_POLICY, type QueuePolicy } from "../model/queue-policy.ts";
import type { PlanQueue } from "../model/snapshot.ts";
import type { Search } from "../preempt/find-victims.ts";
import type { Round } from "../preempt/round.ts";
import { type SizedAsk, unitsOf } from "../queues/ask-shape.ts";
import type { GangClass, GangRecord } from "../queues/records.ts";
import { lowestFit } from "../usage/branch-use.ts";
import { type Branch, type BranchPool, rootOf } from "../usage/branches.ts";
import { whileGone } from "../victims/running-gang.ts";

/** The higher, the better: it takes victims of the own queue, of other queues, or none. */
const PREEMPTS = 1;
const RECLAIMS = 2;
const FITS = 3;

/**
 * Flavors that a gang gets within its quotas now, or once others were preempted: how it gets the worst of them, and how
 * far it borrows. Capacity on nodes does not matter.
 */
export type RankedChoice = { readonly flavors: Flavors; readonly mode: number; readonly level: number };

const NOTHING: RankedChoice = { flavors: [], mode: FITS, level: 0 };

/** True for flavors that a gang gets without preempting others. */
export function fitsNow({ mode }: RankedChoice): boolean {
  return mode === FITS;
}

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
  const byResource = flavorsByResource(gangClass, queue, fleet.resources);
  const choices: OfResource[] = [];
  for (const { resource, flavors } of byResource) {
    const asking = { gangClass, gang, leaf, of, isAlone: byResource.length === 1 };
    const need = unitsOf(sized, fleet.resources)[resource] ?? 0;
    choices.push({ resource, flavors, choices: rankedChoicesOf(asking, flavors, need) });
  }
  const [first] = choices;
  return first !== undefined && choices.length === 1
    ? inOrder(first.choices, leaf.policy)
    : combined(choices, { policy: leaf.policy, areApart: apartIn(gangClass.shape, fleet.excludes) });
}

type OfResource = {
  readonly resource: string;
  readonly flavors: readonly string[];
  readonly choices: Iterable<RankedChoice>;
};

/** The choices of flavors for several resources. */
function combined(
  byResource: readonly OfResource[],
  { policy, areApart }: { readonly policy: QueuePolicy; readonly areApart: AreApart },
): readonly RankedChoice[] {
  let choices: readonly RankedChoice[] = [NOTHING];
  const groups = groupsOf(byResource, areApart);
  for (const group of groups) {
    const tuples = [...inOrder(tuplesOf(group, areApart), policy)];
    choices = choices.flatMap((choice) => tuples.map((tuple) => joined(choice, tuple))).slice(0, CHOICES_MAX);
  }
  const order = groups.flat().map(({ resource }) => resource);
  return choices.map((choice) => {
    return { ...choice, flavors: byResource.map(({ resource }) => choice.flavors[order.indexOf(resource)] ?? "") };
  });
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
function* rankedChoicesOf(asking: Asking, flavors: readonly string[], need: number): Generator<RankedChoice> {
  for (const flavor of flavors) {
    const choice = rankedChoiceOf(asking, flavor, need);
    if (choice !== null) yield choice;
  }
}

function rankedChoiceOf(asking: Asking, flavor: string, need: number): RankedChoice | null {
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

type AreApart = ReturnType<typeof apartIn>;

/** The resources in groups: those of a group have flavors that exclude each other. */
function groupsOf(resources: readonly OfResource[], areApart: AreApart): readonly (readonly OfResource[])[] {
  const groups: OfResource[][] = [];
  for (const one of resources) {
    const known = groups.find((group) => group.some((other) => pairsOf(other, one).some(([a, b]) => areApart(a, b))));
    if (known === undefined) groups.push([one]);
    else known.push(one);
  }
  return groups;
}

function pairsOf(one: FlavorsOf, other: FlavorsOf) {
  const named = ({ resource, flavors }: FlavorsOf) => flavors.map((flavor) => ({ resource, flavor }));
  return named(one).flatMap((a) => named(other).map((b) => [a, b] as const));
}

type FlavorsOf = Pick<OfResource, "resource" | "flavors">;

/** Every choice of flavors for the resources of a group that one node can have. */
function tuplesOf(group: readonly OfResource[], areApart: AreApart): readonly RankedChoice[] {
  let tuples: readonly RankedChoice[] = [NOTHING];
  for (const [place, { resource, choices }] of group.entries()) {
    const more = [...choices];
    const before = group.slice(0, place);
    const isPossible = (tuple: RankedChoice, { flavors: [flavor = ""] }: RankedChoice) =>
      !before.some((other, at) => areApart({ ...other, flavor: tuple.flavors[at] ?? "" }, { resource, flavor }));
    tuples = tuples.flatMap((tuple) => {
      return more.filter((one) => isPossible(tuple, one)).map((one) => joined(tuple, one));
    });
  }
  return tuples;
}

function joined(one: RankedChoice, other: RankedChoice): RankedChoice {
  return {
    flavors: [...one.flavors, ...other.flavors],
    mode: Math.min(one.mode, other.mode),
    level: Math.max(one.level, other.level),
  };
}

/** Those that end the search, then the others, the better before the worse. */
function* inOrder(choices: Iterable<RankedChoice>, { fungibility }: QueuePolicy): Generator<RankedChoice> {
  const { whenCanBorrow, whenCanPreempt, preference } = fungibility;
  const later: RankedChoice[] = [];
  for (const choice of choices) {
    const { mode, level } = choice;
    const triesNext =
      (mode !== FITS && whenCanPreempt === "TRY_NEXT_FLAVOR") || (level > 0 && whenCanBorrow === "TRY_NEXT_FLAVOR");
    if (triesNext) later.push(choice);
    else yield choice;
  }
  const byLevel = (a: RankedChoice, b: RankedChoice) => a.level - b.level;
  const byMode = (a: RankedChoice, b: RankedChoice) => b.mode - a.mode;
  const better = (a: RankedChoice, b: RankedChoice) =>
    preference === "PREEMPTION_OVER_BORROWING" ? byLevel(a, b) || byMode(a, b) : byMode(a, b) || byLevel(a, b);
  yield* later.sort(better);
}

/** True if flavors of several resources are compared by how far a gang borrows with all of them. */
export function isRanked(
  { policy = DEFAULT_POLICY }: PlanQueue,
  { choices: [first = [], ...others] }: FlavorChoices,
): boolean {
  return first.length > 1 && others.length > 0 && policy.fungibility.whenCanBorrow === "TRY_NEXT_FLAVOR";
}
