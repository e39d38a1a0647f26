/** Which replica types of a gang choose their flavors apart from each other, and among which flavors. */
import { type AskShape, type SizedAsk, sharedBetween, unitsOfRole } from "../queues/ask-shape.ts";
import { type Flavors, together } from "./flavors.ts";
import type { Fleet } from "./fleet.ts";

/** A resource that the gang requests, with the flavors of it that its queue has quotas for, in their order. */
export type ResourceFlavors = { readonly resource: string; readonly flavors: readonly string[] };

/** A flavored resource of a replica type, for which it needs a flavor. */
export type RoleSlot = {
  /** The places of the type among those of the ask, and of the resource among those that the gang requests. */
  readonly roleAt: number;
  readonly resourceAt: number;
  readonly resource: string;
  /** Those that the type may get, in the order of the quotas. */
  readonly flavors: readonly string[];
};

/** What flavors mean on nodes. */
export type FlavorRules = Pick<Fleet, "excludes" | "cannotHave" | "inOneCluster">;

/** True if several replica types of a gang request a resource of which there are several flavors. */
export function chooseApart(
  shape: AskShape,
  byResource: readonly ResourceFlavors[],
  resources: readonly string[],
): boolean {
  const shared = sharedBetween(shape, resources);
  return shared.length > 0 && byResource.some((one) => one.flavors.length > 1 && shared.includes(one.resource));
}

/** The slots of all replica types with members, in the order of the types. */
export function slotsOf(
  { ask }: AskShape,
  byResource: readonly ResourceFlavors[],
  { cannotHave }: Pick<FlavorRules, "cannotHave">,
): readonly RoleSlot[] {
  return ask.roles.flatMap(({ podClass: at, replicas }, roleAt) => {
    const podClass = ask.podClasses[at];
    if (podClass === undefined || replicas === 0) return [];
    return byResource.flatMap(({ resource, flavors }, resourceAt): readonly RoleSlot[] => {
      if ((podClass.requests[resource] ?? 0) === 0) return [];
      const possible = flavors.filter((flavor) => !cannotHave(podClass, flavor));
      // Where no node has what its pods select, clusters refuse it, and say why.
      return [{ roleAt, resourceAt, resource, flavors: possible.length === 0 ? flavors : possible }];
    });
  });
}

/** The units of its resource that a slot's members request. */
export function needOf(sized: SizedAsk, { roleAt, resource }: Pick<RoleSlot, "roleAt" | "resource">): number {
  return unitsOfRole(sized, sized.ask.roles[roleAt]?.role ?? "", resource);
}

/** The flavors of each resource that every type which requests it may get. Null: types share none of some resource. */
export function commonFlavors(
  byResource: readonly ResourceFlavors[],
  slots: readonly RoleSlot[],
): readonly ResourceFlavors[] | null {
  const common = byResource.map(({ resource, flavors }, at) => {
    const own = slots.filter(({ resourceAt }) => resourceAt === at);
    return { resource, flavors: flavors.filter((flavor) => own.every((slot) => slot.flavors.includes(flavor))) };
  });
  return common.every(({ flavors }, at) => flavors.length > 0 || byResource[at]?.flavors.length === 0) ? common : null;
}

/**
 * The flavors that a slot may get after those before it got theirs. Some cluster has all of them, and a type whose pods
 * need two resources gets flavors that some node has together. If that leaves none, it gets any. A slot without members
 * gets the flavor of the type before it, if it may: its members may come later.
 */
export function possibleIn(
  slots: readonly RoleSlot[],
  picked: readonly string[],
  of: Pick<FlavorRules, "excludes" | "inOneCluster"> & { readonly need: number },
): readonly string[] {
  const slot = slots[picked.length] as RoleSlot;
  if (of.need === 0) {
    const before = picked.findLast((_, at) => slots[at]?.resourceAt === slot.resourceAt);
    if (before !== undefined && slot.flavors.includes(before)) return [before];
  }
  const own = picked.filter((_, at) => slots[at]?.roleAt === slot.roleAt);
  const flavors = withOthers(slot.flavors, picked, of);
  if (own.length === 0) return flavors;
  const possible = flavors.filter((flavor) => own.every((other) => !of.excludes(other, flavor)));
  return possible.length > 0 ? possible : flavors;
}

/** Those of some flavors that a cluster has together with those that are picked. All if there is none. */
export function withOthers(
  flavors: readonly string[],
  picked: readonly string[],
  { inOneCluster }: Pick<FlavorRules, "inOneCluster">,
): readonly string[] {
  if (picked.length === 0) return flavors;
  const possible = flavors.filter((flavor) => inOneCluster([...picked, flavor]));
  return possible.length > 0 ? possible : flavors;
}

/** The flavors of all slots by resource. A type without members has those of the last type before it. */
export function flavorsOfSlots(
  { ask }: AskShape,
  slots: readonly RoleSlot[],
  picked: readonly string[],
  resources: number,
): Flavors {
  return Array.from({ length: resources }, (_, resourceAt) => {
    let last = "";
    const own = ask.roles.map(({ podClass, replicas }, roleAt) => {
      const at = slots.findIndex((slot) => slot.roleAt === roleAt && slot.resourceAt === resourceAt);
      if (at >= 0) last = picked[at] ?? "";
      const { resource = "" } = slots.find((slot) => slot.resourceAt === resourceAt) ?? {};
      const requests = (ask.podClasses[podClass]?.requests[resource] ?? 0) > 0;
      return at >= 0 || (replicas === 0 && requests) ? last : "";
    });
    return together(own);
  });
}
