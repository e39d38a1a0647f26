/**
 * Names what keeps a gang's pod off the nodes of a cluster. A gang's owner needs the one thing to change: the memory
 * that is missing or the taint, not the GPUs that are free.
 */
import type { BlockedPod } from "../model/blocked-pod.ts";
import type { FreeCapacity } from "./free-capacity.ts";
import { nearestNode } from "./nearest-node.ts";
import type { FitGroup } from "./place-all.ts";

/** Some pods of one class, and the replica type that they are named by. */
export type NamedGroup = FitGroup & { readonly role: string };

type Nodes = {
  /** The nodes on which the pods are placed. They are left as they were. */
  readonly free: FreeCapacity;
  /** The same nodes as if nothing ran on them. */
  readonly empty: FreeCapacity;
  /** The flavor that each label comes from which is demanded of pods of a replica type. */
  readonly flavorOf: (role: string) => Readonly<Record<string, string>>;
};

/**
 * The first pod that finds no node, if best fit places the groups in their order. A pod that no node could ever take
 * comes before one that only finds no capacity. For the latter, only nodes count that could take it if they were empty.
 * Null: every pod finds a node.
 */
export function findBlocked({ free, empty, flavorOf }: Nodes, groups: readonly NamedGroup[]): BlockedPod | null {
  const never = groups.find(({ fit }) => empty.fitting(fit, 1) === 0);
  if (never !== undefined) {
    const { role, fit } = never;
    return { role, placed: 0, never: true, ...nearestNode({ free: empty, fit, mayTake: false }, flavorOf(role)) };
  }
  const { mark } = free;
  let blocked: BlockedPod | null = null;
  for (const { role, fit, count } of groups) {
    const placed = free.place(fit, count);
    if (placed === count) continue;
    blocked = { role, placed, never: false, ...nearestNode({ free, fit, mayTake: true }, flavorOf(role)) };
    break;
  }
  free.undo(mark);
  return blocked;
}
