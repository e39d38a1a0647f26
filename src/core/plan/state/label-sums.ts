import type { NodeLabels } from "../fit.ts";

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
