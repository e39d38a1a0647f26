/** The order in which the flavors of a gang are tried whose queue may have others preempted. */
import type { Flavors } from "../fit/flavors.ts";
import { CHOICES_MAX } from "../model/flavors.ts";
import type { QueuePolicy } from "../model/queue-policy.ts";

/** The higher, the better: it takes victims of the own queue, of other queues, or none. */
export const PREEMPTS = 1;
export const RECLAIMS = 2;
export const FITS = 3;

/**
 * Flavors that a gang gets within its quotas now, or once others were preempted: how it gets the worst of them, and how
 * far it borrows. Capacity on nodes does not matter.
 */
export type RankedChoice = { readonly flavors: Flavors } & Rank;

/** The same for some resources, or some replica types: one flavor of each. */
export type RankedPick = { readonly flavors: readonly string[] } & Rank;

type Rank = { readonly mode: number; readonly level: number };

export const NOTHING: RankedPick = { flavors: [], mode: FITS, level: 0 };

/** True for flavors that a gang gets without preempting others. */
export function fitsNow({ mode }: Rank): boolean {
  return mode === FITS;
}

export type OfResource = {
  readonly resource: string;
  readonly flavors: readonly string[];
  readonly choices: Iterable<RankedPick>;
};

/** The choices of flavors for several resources. */
export function combined(
  byResource: readonly OfResource[],
  { policy, areApart }: { readonly policy: QueuePolicy; readonly areApart: AreApart },
): readonly RankedPick[] {
  let choices: readonly RankedPick[] = [NOTHING];
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

type FlavorOf = { readonly resource: string; readonly flavor: string };

/** True for flavors of two resources that no pod of the gang gets together. */
export type AreApart = (one: FlavorOf, other: FlavorOf) => boolean;

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
function tuplesOf(group: readonly OfResource[], areApart: AreApart): readonly RankedPick[] {
  let tuples: readonly RankedPick[] = [NOTHING];
  for (const [place, { resource, choices }] of group.entries()) {
    const more = [...choices];
    const before = group.slice(0, place);
    const isPossible = (tuple: RankedPick, { flavors: [flavor = ""] }: RankedPick) =>
      !before.some((other, at) => areApart({ ...other, flavor: tuple.flavors[at] ?? "" }, { resource, flavor }));
    tuples = tuples.flatMap((tuple) => {
      return more.filter((one) => isPossible(tuple, one)).map((one) => joined(tuple, one));
    });
  }
  return tuples;
}

export function joined(one: RankedPick, other: RankedPick): RankedPick {
  return {
    flavors: [...one.flavors, ...other.flavors],
    mode: Math.min(one.mode, other.mode),
    level: Math.max(one.level, other.level),
  };
}

/** Those that end the search, then the others, the better before the worse. */
export function* inOrder<R extends Rank>(choices: Iterable<R>, { fungibility }: QueuePolicy): Generator<R> {
  const { whenCanBorrow, whenCanPreempt, preference } = fungibility;
  const later: R[] = [];
  for (const choice of choices) {
    const { mode, level } = choice;
    const triesNext =
      (mode !== FITS && whenCanPreempt === "TRY_NEXT_FLAVOR") || (level > 0 && whenCanBorrow === "TRY_NEXT_FLAVOR");
    if (triesNext) later.push(choice);
    else yield choice;
  }
  const byLevel = (a: R, b: R) => a.level - b.level;
  const byMode = (a: R, b: R) => b.mode - a.mode;
  const better = (a: R, b: R) =>
    preference === "PREEMPTION_OVER_BORROWING" ? byLevel(a, b) || byMode(a, b) : byMode(a, b) || byLevel(a, b);
  yield* later.sort(better);
}
