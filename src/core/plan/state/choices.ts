import { CHOICES_MAX, type FlavorChoice, isForTokens, isModel, restrictedResources } from "../flavors.ts";
import type { PlanQueue } from "../snapshot.ts";
import { type SizedAsk, unitsOf } from "./ask-shape.ts";
import type { Lane } from "./gang-lines.ts";
import type { QuotaBlock, QuotaState } from "./quota-state.ts";

/** One flavor for each flavored resource that a gang requests, in the order of the resources. */
export type Flavors = readonly string[];

/** The flavors that the quotas of a queue allow a gang. */
export type FlavorChoices = {
  /** Possible now, in the order of the quotas. */
  readonly choices: readonly Flavors[];
  /** Possible now, or as soon as pools have room. */
  readonly inLine: readonly Flavors[];
  /** Every level that is in the way. */
  readonly blocks: readonly QuotaBlock[];
  /** The level that keeps each flavor closed which is: it stays closed while this level has no room. */
  readonly closedBy: readonly QuotaBlock[];
  /** True if combinations were left out, because there are too many. */
  readonly cut: boolean;
};

/** The part of a lane that flavors are chosen for. */
export type LaneAsk = Pick<Lane, "shape" | "account" | "priority">;

const NO_BLOCKS: readonly QuotaBlock[] = [];
const NO_FLAVORS: readonly Flavors[] = [[]];

/**
 * Tries the flavors of a lane's gangs. A resource of amount 0, which only later members request, still gets its flavor.
 */
export function flavorChoices(
  lane: LaneAsk,
  queue: PlanQueue,
  of: { readonly sized: SizedAsk; readonly resources: readonly string[]; readonly quota: QuotaState },
): FlavorChoices {
  const { shape } = lane;
  const models = shape.ask.placement.gpuModels;
  const later = unitsOf(shape.all, of.resources);
  const amounts = of.sized === shape.all ? later : unitsOf(of.sized, of.resources);
  const restricted = restrictedResources(queue, Object.keys(later), models);
  const found: Found = { blocks: [], closedBy: [] };
  let choices = NO_FLAVORS;
  let inLine = NO_FLAVORS;
  let cut = false;
  for (const resource of Object.keys(later)) {
    const need = amounts[resource] ?? 0;
    const flavors = flavorsFor(queue, resource, restricted.has(resource) ? models : []);
    if (flavors.length === 0) found.blocks.push(noQuota(queue, models[0] ?? resource, { resource, need }));
    const { open, soon } = tryFlavors(lane, flavors, { resource, need, quota: of.quota, found });
    const [all, allSoon] = [combine(choices, open), combine(inLine, soon)];
    cut ||= Math.max(all.length, allSoon.length) > CHOICES_MAX;
    choices = all.slice(0, CHOICES_MAX);
    inLine = allSoon.slice(0, CHOICES_MAX);
  }
  return { choices, inLine, ...found, cut };
}

type Found = { readonly blocks: QuotaBlock[]; readonly closedBy: QuotaBlock[] };

/** The flavors that are open now, and those that are or lack only tokens of a pool. Notes what closes the others. */
function tryFlavors(
  { account, priority }: LaneAsk,
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
    found.blocks.push(...blocks);
    found.closedBy.push(blocks.find(({ reason }) => reason !== "Reserved") ?? first);
  }
  return { open, soon };
}

/** The flavors of a lane's one flavored resource, in the order of the quotas. Null: it has none, or several. */
export function flavorsOf(
  { shape }: Pick<Lane, "shape">,
  queue: PlanQueue,
  resources: readonly string[],
): readonly string[] | null {
  const [resource, ...others] = Object.keys(unitsOf(shape.all, resources));
  if (resource === undefined || others.length > 0) return null;
  return flavorsFor(queue, resource, shape.ask.placement.gpuModels);
}

/** The flavors of a resource for which a queue has quotas, in their order; of the models only, if there are any. */
function flavorsFor({ quotas }: PlanQueue, resource: string, models: readonly string[]): readonly string[] {
  const flavors: string[] = [];
  for (const { flavor, resource: counted } of quotas) {
    if (counted === resource && (models.length === 0 || isModel(flavor, models))) flavors.push(flavor);
  }
  return flavors;
}

/** The flavors by resource. */
export function choiceOf({ shape }: Pick<Lane, "shape">, flavors: Flavors, resources: readonly string[]): FlavorChoice {
  const requested = Object.keys(unitsOf(shape.all, resources));
  return Object.fromEntries(requested.map((resource, at) => [resource, flavors[at] ?? ""]));
}

function combine(choices: readonly Flavors[], open: readonly string[]): readonly Flavors[] {
  if (choices === NO_FLAVORS) return open.map((flavor) => [flavor]);
  return choices.flatMap((choice) => open.map((flavor) => [...choice, flavor]));
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
