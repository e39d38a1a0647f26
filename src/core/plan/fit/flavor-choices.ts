import { append } from "../../../runtime/lists.ts";
import { CHOICES_MAX, type FlavorChoice, isForTokens, isModel, restrictedResources } from "../model/flavors.ts";
import { DEFAULT_POLICY } from "../model/queue-policy.ts";
import type { PlanQueue } from "../model/snapshot.ts";
import { type SizedAsk, unitsOf } from "../queues/ask-shape.ts";
import type { GangClass } from "../queues/records.ts";
import { borrowingLevel } from "../usage/branch-use.ts";
import type { QuotaBlock, QuotaState } from "../usage/quota-state.ts";
import { apartIn, type Excludes } from "./flavors-apart.ts";

/** One flavor for each flavored resource that a gang requests, in the order of the resources. */
export type Flavors = readonly string[];

/** The flavors that the quotas of a queue allow a gang. */
export type FlavorChoices = {
  /** Possible now, in the order of the quotas. */
  readonly choices: readonly Flavors[];
  /** Possible now, or as soon as pools have capacity. */
  readonly inLine: readonly Flavors[];
  /** Every level that is in the way. */
  readonly blocks: readonly QuotaBlock[];
  /** The level that keeps each flavor closed which is: it stays closed while this level has no capacity. */
  readonly closedBy: readonly QuotaBlock[];
  /** True if combinations were left out, because there are too many. */
  readonly cut: boolean;
};

/** The part of a gang class that flavors are chosen for. */
export type ClassAsk = Pick<GangClass, "shape" | "account" | "priority">;

const NO_BLOCKS: readonly QuotaBlock[] = [];
const NO_FLAVORS: readonly Flavors[] = [[]];

/**
 * Tries the flavors of a class's gangs. A resource of amount 0, which only later members request, still gets its
 * flavor.
 */
export function flavorChoices(
  gangClass: ClassAsk,
  queue: PlanQueue,
  of: {
    readonly sized: SizedAsk;
    readonly resources: readonly string[];
    readonly quota: QuotaState;
    readonly excludes: Excludes;
  },
): FlavorChoices {
  const { shape } = gangClass;
  const models = shape.ask.placement.gpuModels;
  const amounts = unitsOf(of.sized, of.resources);
  const found: Found = { blocks: [], closedBy: [] };
  const byResource = flavorsByResource(gangClass, queue, of.resources);
  const areApartAt = apartAt(gangClass, byResource, of.excludes);
  let choices = NO_FLAVORS;
  let inLine = NO_FLAVORS;
  let cut = false;
  for (const [at, { resource, flavors }] of byResource.entries()) {
    const need = amounts[resource] ?? 0;
    if (flavors.length === 0) found.blocks.push(noQuota(queue, models[0] ?? resource, { resource, need }));
    const { open, soon } = tryFlavors(gangClass, flavors, { resource, need, quota: of.quota, found });
    const inOrder = (some: readonly string[]) => preferred(gangClass, some, { queue, need, quota: of.quota });
    const areApart = areApartAt(at);
    const [all, allSoon] = [combine(choices, inOrder(open), areApart), combine(inLine, inOrder(soon), areApart)];
    cut ||= Math.max(all.length, allSoon.length) > CHOICES_MAX;
    choices = all.slice(0, CHOICES_MAX);
    inLine = allSoon.slice(0, CHOICES_MAX);
  }
  return { choices, inLine, ...found, cut };
}

type Found = { readonly blocks: QuotaBlock[]; readonly closedBy: QuotaBlock[] };

/** The flavors that are open now, and those that are or lack only tokens of a pool. Records what closes the others. */
function tryFlavors(
  { account, priority }: ClassAsk,
  flavors: readonly string[],
  of: { readonly resource: string; readonly need: number; readonly quota: QuotaState; readonly found: Found },
): { readonly open: readonly string[]; readonly soon: readonly string[] } {
  const { resource, need, quota, found } = of;
  const open: string[] = [];
  const soon: string[] = [];
  for (const flavor of flavors) {
    const blocks = quota.admits(account, flavor, { need, priority })
      ? NO_BLOCKS
      : quota.blocks(account, flavor, { resource, need, priority });
    const [first] = blocks;
    if (blocks.every(isForTokens)) soon.push(flavor);
    if (first === undefined) {
      open.push(flavor);
      continue;
    }
    append(found.blocks, blocks);
    found.closedBy.push(blocks.find(({ reason }) => reason !== "Reserved") ?? first);
  }
  return { open, soon };
}

/**
 * Flavors that a queue may use, in the order in which it takes the first that has capacity. A queue that tries the next
 * flavor before it borrows takes one of its own quota first, then one for which it borrows from nearer.
 */
function preferred(
  { account }: ClassAsk,
  flavors: readonly string[],
  of: { readonly queue: PlanQueue; readonly need: number; readonly quota: QuotaState },
): readonly string[] {
  const { fungibility } = of.queue.policy ?? DEFAULT_POLICY;
  if (fungibility.whenCanBorrow === "MAY_STOP_SEARCH" || flavors.length < 2) return flavors;
  const leaf = of.quota.branches.leaf(account.queue);
  const levels = flavors.map((flavor) => {
    return { flavor, level: leaf === null ? 0 : borrowingLevel(of.quota, leaf, new Map([[flavor, of.need]])) };
  });
  return levels.sort((a, b) => a.level - b.level).map(({ flavor }) => flavor);
}

/** The flavors of a class's one flavored resource, in the order of the quotas. Null: it has none, or several. */
export function flavorsOf(
  { shape }: Pick<GangClass, "shape">,
  queue: PlanQueue,
  resources: readonly string[],
): readonly string[] | null {
  const [resource, ...others] = Object.keys(unitsOf(shape.all, resources));
  if (resource === undefined || others.length > 0) return null;
  return flavorsFor(queue, resource, shape.ask.placement.gpuModels);
}

/** The resources that a class's gangs request, with the flavors of each that they may get, in the quotas' order. */
export function flavorsByResource({ shape }: Pick<GangClass, "shape">, queue: PlanQueue, resources: readonly string[]) {
  const models = shape.ask.placement.gpuModels;
  const requested = Object.keys(unitsOf(shape.all, resources));
  const restricted = restrictedResources(queue, requested, models);
  return requested.map((resource) => {
    return { resource, flavors: flavorsFor(queue, resource, restricted.has(resource) ? models : []) };
  });
}

/** The flavors of a resource for which a queue has quotas, in their order; of the models only, if there are any. */
function flavorsFor({ quotas }: PlanQueue, resource: string, models: readonly string[]): readonly string[] {
  const flavors: string[] = [];
  for (const { flavor, resource: counted } of quotas) {
    if (counted === resource && (models.length === 0 || isModel(flavor, models))) flavors.push(flavor);
  }
  return flavors;
}

/**
 * Every choice of flavors for which a class's queue has quotas, in their order, whether or not they have capacity now.
 */
export function choicesOf(
  gangClass: Pick<GangClass, "shape">,
  queue: PlanQueue,
  of: { readonly resources: readonly string[]; readonly excludes: Excludes },
): readonly Flavors[] {
  const byResource = flavorsByResource(gangClass, queue, of.resources);
  const areApartAt = apartAt(gangClass, byResource, of.excludes);
  let choices = NO_FLAVORS;
  for (const [at, { flavors }] of byResource.entries()) {
    choices = combine(choices, flavors, areApartAt(at)).slice(0, CHOICES_MAX);
  }
  return choices;
}

/** The flavors by resource. */
export function choiceOf(
  { shape }: Pick<GangClass, "shape">,
  flavors: Flavors,
  resources: readonly string[],
): FlavorChoice {
  const requested = Object.keys(unitsOf(shape.all, resources));
  return Object.fromEntries(requested.map((resource, at) => [resource, flavors[at] ?? ""]));
}

/**
 * The choices with a flavor of one more resource each. Leaves out flavors that no node has together although a pod
 * needs both. If that leaves none, keeps them: clusters then refuse them, and say why.
 */
function combine(choices: readonly Flavors[], open: readonly string[], areApart: AreApart): readonly Flavors[] {
  if (choices === NO_FLAVORS) return open.map((flavor) => [flavor]);
  const all = choices.flatMap((choice) => open.map((flavor) => ({ choice, flavor })));
  const possible = all.filter(({ choice, flavor }) => !areApart(choice, flavor));
  return (possible.length > 0 ? possible : all).map(({ choice, flavor }) => [...choice, flavor]);
}

/** True if no node has a flavor together with those that were chosen for the resources before. */
type AreApart = (choice: Flavors, flavor: string) => boolean;

/** For the flavors of the resource at a place. */
function apartAt(
  gangClass: Pick<GangClass, "shape">,
  byResource: readonly { readonly resource: string }[],
  excludes: Excludes,
) {
  const areApart = apartIn(gangClass.shape, excludes);
  return (at: number): AreApart => {
    const { resource = "" } = byResource[at] ?? {};
    return (choice, flavor) =>
      choice.some((one, place) => {
        return areApart({ resource: byResource[place]?.resource ?? "", flavor: one }, { resource, flavor });
      });
  };
}

/** True if a pool lacks tokens that others hold, or keeps them for the gang in its waiting line. */
export function concernsTokens({ scope, reason }: QuotaBlock): boolean {
  return scope.kind === "pool" && (reason === "QuotaExhausted" || reason === "Reserved");
}

/** Only a change of the queue ends it. */
function noQuota(
  { name }: PlanQueue,
  flavor: string,
  { resource, need }: Pick<QuotaBlock, "resource" | "need">,
): QuotaBlock {
  const scope = { kind: "queue", pool: flavor, queue: name } as const;
  const amounts = { need, used: 0, limit: 0, reserved: 0, leastNeed: Number.POSITIVE_INFINITY };
  return { pool: flavor, level: -1, scope, reason: "NoQuota", resource, ...amounts };
}
