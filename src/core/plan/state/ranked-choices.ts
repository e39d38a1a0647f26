import { CHOICES_MAX } from "../flavors.ts";
import { whileGone } from "../preempt/running-gang.ts";
import { DEFAULT_POLICY, type QueuePolicy } from "../queue-policy.ts";
import type { PlanQueue } from "../snapshot.ts";
import { type SizedAsk, unitsOf } from "./ask-shape.ts";
import { lowestFit } from "./branch-use.ts";
import { type Branch, type BranchPool, rootOf } from "./branches.ts";
import { type FlavorChoices, type Flavors, flavorsByResource } from "./choices.ts";
import type { FindVictims } from "./find-victims.ts";
import type { Entry, Lane } from "./gang-lines.ts";
import type { Parts } from "./state-parts.ts";

/** The higher, the better: it takes victims of the own queue, of other queues, or none. */
const PREEMPTS = 1;
const RECLAIMS = 2;
const FITS = 3;

/**
 * Flavors that a gang gets within its quotas now, or once others gave way: how it gets the worst of them, and how far
 * it borrows. Room on nodes does not matter.
 */
export type RankedChoice = { readonly flavors: Flavors; readonly mode: number; readonly level: number };

const NOTHING: RankedChoice = { flavors: [], mode: FITS, level: 0 };

/** True for flavors that a gang gets without others that give way. */
export function fitsNow({ mode }: RankedChoice): boolean {
  return mode === FITS;
}

type Of = {
  readonly parts: Parts;
  readonly victims: FindVictims;
  readonly queue: PlanQueue;
  readonly sized: SizedAsk;
};

/** True if others may be preempted for a gang of a queue. Undefined: there is no such queue. */
export function mayPreempt(queue: PlanQueue | undefined, { gang }: Pick<Entry, "gang">): boolean {
  if (gang.neverPreempts === true) return false;
  const policy = queue?.policy ?? DEFAULT_POLICY;
  return policy.withinQueue !== "NEVER" || policy.reclaimWithinTree !== "NEVER";
}

/**
 * The flavors of a gang whose queue may have others preempted, the best first, by Kueue's rules (`flavorassigner.go`):
 * the first flavor that ends the search, else those that need no preemption, those that reclaim, those that preempt.
 * Resources whose flavors exclude each other on nodes are chosen together. If a gang requests one resource by
 * flavor, a flavor is looked up only once those before it were refused.
 */
export function rankedChoices(lane: Lane, entry: Entry, of: Of): Iterable<RankedChoice> {
  const { parts, queue, sized } = of;
  const leaf = parts.quota.branches.leaf(lane.line.name);
  if (leaf === null) return [];
  const byResource = flavorsByResource(lane, queue, parts.resources);
  const standings: OfResource[] = [];
  for (const { resource, flavors } of byResource) {
    const asking = { lane, entry, leaf, of, isAlone: byResource.length === 1 };
    const need = unitsOf(sized, parts.resources)[resource] ?? 0;
    standings.push({ resource, flavors, standings: standingsOf(asking, flavors, need) });
  }
  const [first] = standings;
  return first !== undefined && standings.length === 1
    ? inOrder(first.standings, leaf.policy)
    : combined(standings, { policy: leaf.policy, excludes: parts.excludes });
}

type OfResource = {
  readonly resource: string;
  readonly flavors: readonly string[];
  readonly standings: Iterable<RankedChoice>;
};

/** The choices of flavors for several resources. */
function combined(
  byResource: readonly OfResource[],
  { policy, excludes }: { readonly policy: QueuePolicy; readonly excludes: Excludes },
): readonly RankedChoice[] {
  let choices: readonly RankedChoice[] = [NOTHING];
  const groups = groupsOf(byResource, excludes);
  for (const group of groups) {
    const tuples = [...inOrder(tuplesOf(group, excludes), policy)];
    choices = choices.flatMap((choice) => tuples.map((tuple) => joined(choice, tuple))).slice(0, CHOICES_MAX);
  }
  const order = groups.flat().map(({ resource }) => resource);
  return choices.map((choice) => {
    return { ...choice, flavors: byResource.map(({ resource }) => choice.flavors[order.indexOf(resource)] ?? "") };
  });
}

/** A gang that asks for flavors in a leaf. `isAlone`: it requests no other resource by flavor. */
type Asking = {
  readonly lane: Lane;
  readonly entry: Entry;
  readonly leaf: Branch;
  readonly of: Of;
  readonly isAlone: boolean;
};

/** How a gang gets each of some flavors. Omits those that it does not get. */
function* standingsOf(asking: Asking, flavors: readonly string[], need: number): Generator<RankedChoice> {
  for (const flavor of flavors) {
    const standing = standingOf(asking, flavor, need);
    if (standing !== null) yield standing;
  }
}

function standingOf(asking: Asking, flavor: string, need: number): RankedChoice | null {
  const { lane, leaf, of } = asking;
  const { quota } = of.parts;
  const pool = leaf.pools.get(flavor);
  const flavors = [flavor];
  if (quota.admits(lane.account, flavor, { need, priority: lane.priority })) {
    return { flavors, mode: FITS, level: pool === undefined ? 0 : lowestFit(quota, pool, need).height };
  }
  if (pool === undefined || need > pool.potential || !mayTryPreempting(of, leaf, { pool, need })) return null;
  if (asking.isAlone && isHopeless(asking, flavor, need)) return null;
  const victims = of.victims.forPool(asking, flavor, need);
  if (victims === null) return null;
  const gangs = victims.map(({ gang }) => gang);
  const level = whileGone(quota, gangs, () => lowestFit(quota, pool, need).height);
  const isOwn = victims.some(({ gang }) => gang.account.queue === lane.line.name);
  return { flavors, mode: isOwn ? PREEMPTS : RECLAIMS, level };
}

/** True if victims would not make room for a gang that requests one flavor. */
function isHopeless({ lane, entry, of }: Asking, flavor: string, need: number): boolean {
  const request = of.parts.requestOf(lane, of.sized, [flavor]);
  return of.victims.isHopeless({ lane, entry, request, wants: new Map([[flavor, need]]) });
}

/** Preempting is tried within the own quota, in a part of the tree that has the room, or where borrowing allows it. */
function mayTryPreempting(
  { parts }: Of,
  leaf: Branch,
  { pool, need }: { readonly pool: BranchPool; readonly need: number },
): boolean {
  const { borrowWithin, reclaimWithinTree } = leaf.policy;
  if (pool.nominal >= need || lowestFit(parts.quota, pool, need).belowRoot) return true;
  if (borrowWithin.policy !== "NEVER") return true;
  return rootOf(leaf).policy.fairSharing !== null && reclaimWithinTree !== "NEVER";
}

type Excludes = Parts["excludes"];

/** The resources in groups: those of a group have flavors that exclude each other. */
function groupsOf(resources: readonly OfResource[], excludes: Excludes): readonly (readonly OfResource[])[] {
  const groups: OfResource[][] = [];
  for (const one of resources) {
    const known = groups.find((group) =>
      group.some(({ flavors }) => flavors.some((a) => one.flavors.some((b) => excludes(a, b)))),
    );
    if (known === undefined) groups.push([one]);
    else known.push(one);
  }
  return groups;
}

/** Every choice of flavors for the resources of a group that one node can have. */
function tuplesOf(group: readonly OfResource[], excludes: Excludes): readonly RankedChoice[] {
  let tuples: readonly RankedChoice[] = [NOTHING];
  for (const { standings } of group) {
    const more = [...standings];
    tuples = tuples.flatMap((tuple) =>
      more.flatMap((one) =>
        tuple.flavors.some((a) => one.flavors.some((b) => excludes(a, b))) ? [] : [joined(tuple, one)],
      ),
    );
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
