import { compareText } from "../../../runtime/compare-text.ts";
import type { NodeCapacity } from "../snapshot.ts";

/** The place of each slot's node in the order of their names. Slots without a node come first. */
export function ranksByName(nodes: readonly (NodeCapacity | null)[]): Int32Array {
  const ranks = new Int32Array(nodes.length);
  const byName = [...nodes.keys()].sort((a, b) => compareText(nodes[a]?.name ?? "", nodes[b]?.name ?? ""));
  for (const [place, slot] of byName.entries()) ranks[slot] = place;
  return ranks;
}
