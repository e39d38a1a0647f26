import { hasLabels } from "../../job/labels.ts";
import type { NodeLabels } from "../model/node-labels.ts";
import type { NodeCapacity } from "../model/snapshot.ts";

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

/** Which nodes have some labels, by slot: 1 if one has. */
type Carried = { readonly labels: NodeLabels; readonly slots: Uint8Array };

/** Sums over the nodes with some labels. Placements move them. */
export class LabelSums {
  readonly #sums = new Map<string, LabelSum>();
  /** By the keys of labels. */
  readonly #carried = new Map<string, Carried>();

  /** The sum over those of the nodes, by slot, that have some labels. */
  get(of: Fullness, nodes: readonly (NodeCapacity | null)[], amounts: Column): LabelSum {
    const key = `${of.resource} ${of.labelsKey}`;
    const sum = this.#sums.get(key) ?? sumOf(this.#carriedIn(of, nodes), amounts);
    this.#sums.set(key, sum);
    return sum;
  }

  #carriedIn({ labels, labelsKey }: Fullness, nodes: readonly (NodeCapacity | null)[]): Uint8Array {
    const known = this.#carried.get(labelsKey);
    if (known !== undefined && known.slots.length === nodes.length) return known.slots;
    const slots = Uint8Array.from(nodes, (node) => Number(node !== null && hasLabels(node.labels, labels)));
    this.#carried.set(labelsKey, { labels, slots });
    return slots;
  }

  /** Records the node of a slot. Null: it has none. Call `clear` before the sums are used. */
  setNode(slot: number, node: NodeCapacity | null): void {
    for (const { labels, slots } of this.#carried.values()) {
      if (slot < slots.length) slots[slot] = Number(node !== null && hasLabels(node.labels, labels));
    }
  }

  /** Records that a slot's node has more left of a column. */
  add(column: number, slot: number, amount: number): void {
    for (const sum of this.#sums.values()) {
      if (sum.column === column && sum.carried[slot] === 1) sum.free += amount;
    }
  }

  /** Forgets the sums, but not which nodes have which labels. */
  clear(): void {
    this.#sums.clear();
  }
}

function sumOf(carried: Uint8Array, { column, free, allocatable }: Column): LabelSum {
  const sum: LabelSum = { column, free: 0, allocatable: 0, carried };
  for (let slot = 0; slot < carried.length; slot++) {
    if (carried[slot] === 0) continue;
    sum.free += free[slot] as number;
    sum.allocatable += allocatable[slot] as number;
  }
  return sum;
}
