import { carries, type NodeLabels } from "../fit.ts";
import type { NodeCapacity } from "../snapshot.ts";

/** The amounts of one resource on the nodes with some labels. */
export type LabelSum = {
  readonly column: number;
  free: number;
  allocatable: number;
  /** By slot: 1 if the node has the labels. */
  readonly carried: Uint8Array;
};

/** The resource by which clusters are compared, and the labels of the nodes that count. */
export type Fullness = { readonly resource: string; readonly labels: NodeLabels; readonly labelsKey: string };

/** The amounts of one column, by slot. */
type Column = { readonly column: number; readonly free: Float64Array; readonly allocatable: Float64Array };

/** Sums over the nodes with some labels. Placements move them. */
export class LabelSums {
  readonly #sums = new Map<string, LabelSum>();

  get({ resource, labelsKey }: Fullness, make: () => LabelSum): LabelSum {
    const key = `${resource} ${labelsKey}`;
    const sum = this.#sums.get(key) ?? make();
    this.#sums.set(key, sum);
    return sum;
  }

  /** Notes that a slot's node has more left of a column. */
  add(column: number, slot: number, amount: number): void {
    for (const sum of this.#sums.values()) {
      if (sum.column === column && sum.carried[slot] === 1) sum.free += amount;
    }
  }

  clear(): void {
    this.#sums.clear();
  }
}

/** The sum over those of the nodes, by slot, that have some labels. */
export function labelSum(
  nodes: readonly (NodeCapacity | null)[],
  labels: NodeLabels,
  { column, free, allocatable }: Column,
): LabelSum {
  const sum: LabelSum = { column, free: 0, allocatable: 0, carried: new Uint8Array(nodes.length) };
  for (const [slot, node] of nodes.entries()) {
    if (node === null || !carries(node.labels, labels)) continue;
    sum.carried[slot] = 1;
    sum.free += free[slot] as number;
    sum.allocatable += allocatable[slot] as number;
  }
  return sum;
}
