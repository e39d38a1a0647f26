/** The pods of gangs that no node shows yet: how many there are, and on which nodes the capacity counts them. */
import { nodesOf, type Placement } from "../../job/placement/placement.ts";
import type { PodClass } from "../model/ask.ts";
import type { BoundMember } from "../model/snapshot.ts";
import type { FitClass } from "./fit-classes.ts";
import type { FreeCapacity } from "./free-capacity.ts";
import type { FitGroup } from "./place-all.ts";

/** The members of a replica type that an admission has. */
export type Expected = {
  readonly podClass: PodClass;
  readonly role: string;
  readonly count: number;
  /** The indexes of those that gave their tokens back. */
  readonly returned?: readonly number[] | undefined;
};

/** A pod on a node. */
export type PlacedPod = { readonly node: string; readonly fit: FitClass };

export type UnseenGroup = FitGroup & {
  readonly role: string;
  /** The planned nodes of those that have some, in the order of their indexes. */
  readonly planned: readonly NodePods[];
};

/** A number of pods on a node. */
export type NodePods = { readonly node: string; readonly pods: number };

/** A pod that no node shows yet, on the node where the capacity counts it. */
export type UnseenPod = PlacedPod & { readonly role: string };

/** The unseen members of gangs, and how many of each class are placed on which nodes. */
export type PlacedUnseen = {
  /** Those that their planned nodes take, by gang. */
  readonly onPlan: readonly (UnseenPod & { readonly jobUid: string; readonly pods: number })[];
  /** The others. */
  readonly gangs: readonly (readonly [jobUid: string, groups: readonly UnseenGroup[]])[];
  readonly placed: readonly (PlacedPod & { readonly pods: number })[];
};

/** The members of an admission that nodes show, by node. */
export type ShownMembers = ReadonlyMap<string, readonly BoundMember[]>;

/** Puts the unseen pods of gangs on their planned nodes, as far as these take them. `left`: the others. */
export function placeOnPlan(
  free: FreeCapacity,
  gangs: PlacedUnseen["gangs"],
): { readonly onPlan: PlacedUnseen["onPlan"]; readonly left: PlacedUnseen["gangs"] } {
  const onPlan: PlacedUnseen["onPlan"][number][] = [];
  const left = gangs.map(([jobUid, groups]) => {
    const others = groups.flatMap((group): readonly UnseenGroup[] => {
      const { fit, role } = group;
      let { count } = group;
      for (const { node, pods: wanted } of group.planned) {
        const pods = free.placeOn(node, fit, wanted);
        if (pods > 0) onPlan.push({ jobUid, role, fit, node, pods });
        count -= pods;
      }
      return count > 0 ? [{ ...group, count }] : [];
    });
    return [jobUid, others] as const;
  });
  return { onPlan, left };
}

/** Deals the places of each class out to the gangs in their order: pods of one class may change places. */
export function unseenPlaces({ onPlan, gangs, placed }: PlacedUnseen): ReadonlyMap<string, readonly UnseenPod[]> {
  const left = new Map<FitClass, PlacedPod[]>();
  for (const { fit, node, pods } of placed) {
    const places = left.get(fit) ?? [];
    left.set(fit, places);
    for (let pod = 0; pod < pods; pod++) places.push({ fit, node });
  }
  const deal = ({ fit, count, role }: UnseenGroup): readonly UnseenPod[] =>
    (left.get(fit)?.splice(-count) ?? []).map((pod) => ({ ...pod, role }));
  const planned = Map.groupBy(onPlan, ({ jobUid }) => jobUid);
  return new Map(
    gangs.map(([jobUid, groups]) => {
      const onNodes = (planned.get(jobUid) ?? []).flatMap(({ fit, node, role, pods }) =>
        Array.from({ length: pods }, () => ({ fit, node, role })),
      );
      return [jobUid, [...onNodes, ...groups.flatMap(deal)]];
    }),
  );
}

export function isSameUnseen(before: readonly UnseenGroup[], after: readonly UnseenGroup[]): boolean {
  if (before.length !== after.length) return false;
  return before.every(({ fit, count, planned }, at) => {
    const other = after[at];
    return other?.fit === fit && other.count === count && isSamePlan(planned, other.planned);
  });
}

function isSamePlan(before: readonly NodePods[], after: readonly NodePods[]): boolean {
  if (before.length !== after.length) return false;
  return before.every(({ node, pods }, at) => after[at]?.node === node && after[at].pods === pods);
}

/** The planned nodes of a replica type's members but those that are seen, in the order of their indexes. */
export function plannedNodes(
  placement: Placement,
  { role, count }: Expected,
  seen: ReadonlySet<number>,
): readonly NodePods[] {
  const nodes: { node: string; pods: number }[] = [];
  for (const [index, node] of nodesOf(placement, role, count).entries()) {
    if (node === null || seen.has(index)) continue;
    const last = nodes.at(-1);
    if (last?.node === node) last.pods += 1;
    else nodes.push({ node, pods: 1 });
  }
  return nodes;
}

/**
 * How many of the first members of a replica type will take capacity that no node shows: not those that gave their
 * tokens back, whose pods have ended. Counts each index once, and only indexes of members. Pods have their replica type
 * in lower case.
 */
export function countUnseen(shown: ShownMembers, of: Omit<Expected, "podClass">): number {
  if (shown.size + (of.returned ?? []).length === 0) return of.count;
  return of.count - seenIndexes(shown, of).size;
}

/** The indexes of members that nodes show, or whose pods have ended. */
export function seenIndexes(
  shown: ShownMembers,
  { role, returned = [], count }: Omit<Expected, "podClass">,
): Set<number> {
  const seen = new Set(returned.filter((index) => index < count));
  const name = role.toLowerCase();
  for (const members of shown.values()) {
    for (const member of members) if (member.role === name && member.index < count) seen.add(member.index);
  }
  return seen;
}
