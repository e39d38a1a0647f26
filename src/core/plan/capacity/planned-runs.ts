import { compareText } from "../../../runtime/compare-text.ts";
import { getOrCreate } from "../../../runtime/get-or-create.ts";
import { OTHER_NODES_MAX, type PlannedRun } from "../../job/placement/placement.ts";
import { type Bound, slotsWithin } from "./domain-bounds.ts";
import { NO_LEAF } from "./domain-tree.ts";
import type { FitClass } from "./fit-classes.ts";
import type { FreeCapacity } from "./free-capacity.ts";
import type { PlacedOnSlot } from "./placement-trail.ts";
import type { NodePods } from "./unseen-pods.ts";

/** Members of one replica type with consecutive indexes. */
type Members = { readonly role: string; readonly first: number; readonly count: number };

/** Pods of one class, and the members that they are for, in the order in which they get the nodes. */
export type GroupToPlace = {
  readonly fit: FitClass;
  readonly members: readonly Members[];
  /** True: it was placed by a wish of its own, before the groups without one, and in the order of the groups. */
  readonly wishes: boolean;
  /** The levels of which a member must not leave its domain. */
  readonly bounds: readonly Bound[];
};

/**
 * The nodes of members that were just placed after a mark. Nodes are dealt out in the order of their domains and names,
 * so that neighbouring members are near each other.
 */
export function plannedRuns(free: FreeCapacity, mark: number, groups: readonly GroupToPlace[]): readonly PlannedRun[] {
  const placed = Map.groupBy(free.placedAfter(mark), ({ fit }) => fit);
  const inTurn = [...groups.filter(({ wishes }) => wishes), ...groups.filter(({ wishes }) => !wishes)];
  const own = new Map(inTurn.map((group) => [group, takeFirst(placed.get(group.fit) ?? [], group.members)]));
  return groups.flatMap((group) => {
    const { fit, members } = group;
    const leafAt = free.domainsFor(fit)?.tree.leafAt;
    const leafOf = (slot: number) => leafAt?.[slot] ?? NO_LEAF;
    const nodes = (own.get(group) ?? [])
      .map(({ slot, pods }) => ({ slot, node: free.nodeAt(slot)?.name ?? "", pods }))
      .sort((a, b) => leafOf(a.slot) - leafOf(b.slot) || compareText(a.node, b.node));
    const spareFor = spareNodes(free, group);
    return deal(nodes, members).map((run) => {
      return { ...run, others: spareFor(run.node).slice(0, OTHER_NODES_MAX) };
    });
  });
}

/** Takes the first placements off a list, as many as there are members. */
function takeFirst(placed: PlacedOnSlot[], members: readonly Members[]): readonly PlacedOnSlot[] {
  let left = members.reduce((sum, { count }) => sum + count, 0);
  const taken: PlacedOnSlot[] = [];
  while (left > 0 && placed.length > 0) {
    const next = placed.shift() as PlacedOnSlot;
    taken.push(next);
    left -= next.pods;
  }
  return taken;
}

/** The other nodes that take a pod of a group now, for one that is planned on a node: none outside of its domains. */
function spareNodes(free: FreeCapacity, { fit, bounds }: GroupToPlace): (planned: string) => readonly string[] {
  const first = () => free.firstFor(fit, OTHER_NODES_MAX + 1);
  const bySlots = new Map<string, readonly string[]>();
  return (planned) => {
    const slots = slotsWithin(free, planned, bounds);
    if (slots !== null && slots.length < 2) return [];
    // A domain is named by its first slot and its size.
    const key = slots === null ? "" : `${slots[0]} ${slots.length}`;
    const names = getOrCreate(bySlots, key, () => (slots === null ? first() : free.within(slots, first)));
    return names.filter((name) => name !== planned);
  };
}

/** Deals nodes out to members, as many to each node as it has pods. */
function deal(nodes: readonly NodePods[], members: readonly Members[]): readonly Omit<PlannedRun, "others">[] {
  const runs: Omit<PlannedRun, "others">[] = [];
  const open = nodes.map(({ node, pods }) => ({ node, left: pods })).reverse();
  for (const { role, first, count } of members) {
    for (let done = 0; done < count; ) {
      const last = open.at(-1);
      if (last === undefined) return runs;
      const pods = Math.min(last.left, count - done);
      runs.push({ role, first: first + done, count: pods, node: last.node });
      done += pods;
      last.left -= pods;
      if (last.left === 0) open.pop();
    }
  }
  return runs;
}
