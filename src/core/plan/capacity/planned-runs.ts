import { compareText } from "../../../runtime/compare-text.ts";
import { OTHER_NODES_MAX, type PlannedRun } from "../../job/placement/placement.ts";
import type { FitClass } from "./fit-classes.ts";
import type { FreeCapacity } from "./free-capacity.ts";
import type { NodePods } from "./unseen-pods.ts";

/** Members of one replica type with consecutive indexes. */
type Members = { readonly role: string; readonly first: number; readonly count: number };

/** Pods of one class, and the members that they are for, in the order in which they get the nodes. */
type GroupToPlace = { readonly fit: FitClass; readonly members: readonly Members[] };

/**
 * The nodes of members that were just placed after a mark. Nodes are dealt out in the order of their names, so that
 * neighbouring members are near each other.
 */
export function plannedRuns(free: FreeCapacity, mark: number, groups: readonly GroupToPlace[]): readonly PlannedRun[] {
  const placed = Map.groupBy(free.placedAfter(mark), ({ fit }) => fit);
  return groups.flatMap(({ fit, members }) => {
    const nodes = (placed.get(fit) ?? [])
      .map(({ slot, pods }) => ({ node: free.nodeAt(slot)?.name ?? "", pods }))
      .sort((a, b) => compareText(a.node, b.node));
    const spare = free.firstFor(fit, OTHER_NODES_MAX + 1);
    return deal(nodes, members).map((run) => {
      return { ...run, others: spare.filter((name) => name !== run.node).slice(0, OTHER_NODES_MAX) };
    });
  });
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
