import { NO_LEAF } from "./domain-tree.ts";
import type { FitClass } from "./fit-classes.ts";
import type { FreeCapacity } from "./free-capacity.ts";

/** A level of which a member must not leave its domain, among the levels that nodes have for pods of a class. */
export type Bound = { readonly by: FitClass; readonly level: number };

/** The slots that a member may have which is on a node. Null: all. None: its node is gone, or is in no domain. */
export function slotsWithin(free: FreeCapacity, node: string, bounds: readonly Bound[]): readonly number[] | null {
  let slots: readonly number[] | null = null;
  for (const { by, level } of bounds) {
    const tree = free.domainsFor(by)?.tree;
    const leaf = tree?.leafAt[free.slotOf(node) ?? -1] ?? NO_LEAF;
    if (tree === undefined || leaf < 0) return [];
    slots = inBoth(slots, tree.slotsUnder(tree.above(leaf, level)));
  }
  return slots;
}

function inBoth(some: readonly number[] | null, others: readonly number[]): readonly number[] {
  if (some === null) return others;
  const known = new Set(some);
  return others.filter((slot) => known.has(slot));
}
