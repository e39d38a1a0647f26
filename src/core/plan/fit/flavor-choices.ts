import { append } from "../../../runtime/lists.ts";
import { CHOICES_MAX, isForTokens, isModel, restrictedResources } from "../model/flavors.ts";
import { DEFAULT_POLICY } from "../model/queue-policy.ts";
import type { PlanQueue } from "../model/snapshot.ts";
import { type SizedAsk, unitsOf } from "../queues/ask-shape.ts";
import type { GangClass } from "../queues/records.ts";
import { borrowingLevel } from "../usage/branch-use.ts";
import { closingOf, concernsTokens, isNever } from "../usage/quota-blocks.ts";
import type { QuotaBlock, QuotaState } from "../usage/quota-state.ts";
import { type ClassAsk, type Flavors, flavorsKey } from "./flavors.ts";
import { apartIn, type Excludes } from "./flavors-apart.ts";
import { blocksOfMixes, mixesOf, walkSlots } from "./role-choices.ts";
import { chooseApart, commonFlavors, type FlavorRules, type ResourceFlavors, slotsOf } from "./role-slots.ts";

/** The flavors that the quotas of a queue allow a gang. */
export type FlavorChoices = {
  /** Possible now, in the order of the quotas. */
  readonly choices: readonly Flavors[];
  /** Possible now, or as soon as pools have capacity. */
  readonly inLine: readonly Flavors[];
  /** Every level that is in the way. With more of all of them, some choice is possible. */
  readonly blocks: readonly QuotaBlock[];
  /** The level that keeps each flavor closed which is: it stays closed while this level has no capacity. */
  readonly closedBy: readonly QuotaBlock[];
  /** True if pools lack tokens, as `concernsTokens` has it. */
  readonly lacksTokens: boolean;
  /** True if replica types choose their flavors apart from each other. */
  readonly byRole: boolean;
  /** True if combinations were left out, because there are too many. */
  readonly cut: boolean;
};

type Of = FlavorRules & {
  readonly sized: SizedAsk;
  readonly resources: readonly string[];
  readonly quota: QuotaState;
};

const NO_BLOCKS: readonly QuotaBlock[] = [];
const NO_FLAVORS: readonly (readonly string[])[] = [[]];

/**
 * Tries the flavors of a class's gangs. A resource of amount 0, which only later members request, still gets its
 * flavor.
 */
export function flavorChoices(gangClass: ClassAsk, queue: PlanQueue, of: Of): FlavorChoices {
  const byResource = flavorsByResource(gangClass, queue, of.resources);
  const isApart = chooseApart(gangClass.shape, byResource, of.resources);
  const hasNone = byResource.some(({ flavors }) => flavors.length === 0);
  if (!isApart || hasNone) return choicesTogether(gangClass, queue, byResource, of);
  const slots = slotsOf(gangClass.shape, byResource, of);
  const common = commonFlavors(byResource, slots);
  const all = common === null ? null : choicesTogether(gangClass, queue, common, of);
  const walk = walkSlots(gangClass, slots, { ...of, width: byResource.length });
  // Choices in which all types have the same flavors are tried, however many others there are.
  const withAll = (found: readonly Flavors[], some: readonly Flavors[] = []) =>
    walk.cut ? joined(found, some) : found;
  const isEnough = all !== null && mayBeTogether(common ?? [], all.blocks);
  return {
    choices: withAll(walk.open, all?.choices),
    inLine: withAll(walk.inLine, all?.inLine),
    blocks: isEnough ? all.blocks : blocksOfMixes(gangClass, slots, { ...of, width: byResource.length }),
    closedBy: walk.closedBy,
    lacksTokens: walk.lacksTokens || all?.lacksTokens === true,
    byRole: true,
    cut: walk.cut,
  };
}

/** Tries flavors that all replica types get. */
function choicesTogether(
  gangClass: ClassAsk,
  queue: PlanQueue,
  byResource: readonly ResourceFlavors[],
  of: Of,
): FlavorChoices {
  const { shape } = gangClass;
  const models = shape.ask.placement.gpuModels;
  const amounts = unitsOf(of.sized, of.resources);
  const found: Found = { blocks: [], closedBy: [] };
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
  return { choices, inLine, ...found, lacksTokens: found.blocks.some(concernsTokens), byRole: false, cut };
}

/** Some choices, of which the last ones give way to others that are not among them. */
function joined(found: readonly Flavors[], others: readonly Flavors[]): readonly Flavors[] {
  const keys = new Set(found.map(flavorsKey));
  const more = others.filter((flavors) => !keys.has(flavorsKey(flavors))).slice(0, CHOICES_MAX / 2);
  return [...found.slice(0, CHOICES_MAX - more.length), ...more];
}

/** True if all types may come to have the same flavors once others use less. */
function mayBeTogether(byResource: readonly ResourceFlavors[], blocks: readonly QuotaBlock[]): boolean {
  const never = new Set(blocks.filter(isNever).map(({ pool }) => pool));
  return byResource.every(({ flavors }) => flavors.some((flavor) => !never.has(flavor)));
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
    const closing = closingOf(blocks);
    if (blocks.every(isForTokens)) soon.push(flavor);
    if (closing === undefined) {
      open.push(flavor);
      continue;
    }
    append(found.blocks, blocks);
    found.closedBy.push(closing);
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

/**
 * The flavors of a class's one flavored resource, in the order of the quotas. Null: it has none, or several, or replica
 * types choose theirs apart from each other.
 */
export function flavorsOf(
  { shape }: Pick<GangClass, "shape">,
  queue: PlanQueue,
  resources: readonly string[],
): readonly string[] | null {
  const [resource, ...others] = Object.keys(unitsOf(shape.all, resources));
  if (resource === undefined || others.length > 0) return null;
  const flavors = flavorsFor(queue, resource, shape.ask.placement.gpuModels);
  return chooseApart(shape, [{ resource, flavors }], resources) ? null : flavors;
}

/** The resources that a class's gangs request, with the flavors of each that they may get, in the quotas' order. */
export function flavorsByResource(
  { shape }: Pick<GangClass, "shape">,
  queue: PlanQueue,
  resources: readonly string[],
): readonly ResourceFlavors[] {
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
  of: FlavorRules & { readonly resources: readonly string[] },
): readonly Flavors[] {
  const byResource = flavorsByResource(gangClass, queue, of.resources);
  const isApart = chooseApart(gangClass.shape, byResource, of.resources);
  if (!isApart) return allTogether(gangClass, byResource, of);
  const slots = slotsOf(gangClass.shape, byResource, of);
  const { mixes, cut } = mixesOf(gangClass.shape, slots, { ...of, width: byResource.length });
  const common = cut ? commonFlavors(byResource, slots) : null;
  return common === null ? mixes : joined(mixes, allTogether(gangClass, common, of));
}

function allTogether(
  gangClass: Pick<GangClass, "shape">,
  byResource: readonly ResourceFlavors[],
  { excludes }: Pick<FlavorRules, "excludes">,
): readonly Flavors[] {
  const areApartAt = apartAt(gangClass, byResource, excludes);
  let choices = NO_FLAVORS;
  for (const [at, { flavors }] of byResource.entries()) {
    choices = combine(choices, flavors, areApartAt(at)).slice(0, CHOICES_MAX);
  }
  return choices;
}

/**
 * The choices with a flavor of one more resource each. Leaves out flavors that no node has together although a pod
 * needs both. If that leaves none, keeps them: clusters then refuse them, and say why.
 */
function combine(choices: readonly Picked[], open: readonly string[], areApart: AreApart): readonly Picked[] {
  if (choices === NO_FLAVORS) return open.map((flavor) => [flavor]);
  const all = choices.flatMap((choice) => open.map((flavor) => ({ choice, flavor })));
  const possible = all.filter(({ choice, flavor }) => !areApart(choice, flavor));
  return (possible.length > 0 ? possible : all).map(({ choice, flavor }) => [...choice, flavor]);
}

/** True if no node has a flavor together with those that were chosen for the resources before. */
type AreApart = (choice: Picked, flavor: string) => boolean;

/** A flavor for each resource. */
type Picked = readonly string[];

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
