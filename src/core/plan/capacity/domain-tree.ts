import { compareText } from "../../../runtime/compare-text.ts";
import type { NodeCapacity } from "../model/snapshot.ts";

/** The leaf of a slot whose node lacks the label of a level, and of one without a node. */
export const NO_LEAF = -1;

/**
 * The domains of a cluster's nodes as a tree, with the finest ones, the leaves, below. Domains are numbered level by
 * level, coarse to fine, and in the order of their paths within a level. A node that lacks a label is in none.
 */
export class DomainTree {
  /** The number of the first domain of each level, and at last how many domains there are. */
  readonly starts: readonly number[];
  /** By domain: the one of the coarser level that it is in; below 0 for those of the coarsest level. */
  readonly parents: Int32Array;
  /** By slot: the finest domain of its node. */
  readonly leafAt: Int32Array;
  readonly #values: readonly string[];
  readonly #slots: readonly (readonly number[])[];

  constructor(labels: readonly string[], nodes: readonly (NodeCapacity | null)[]) {
    const located = nodes.flatMap((node, slot) => {
      const path = labels.map((label) => node?.labels[label]);
      return path.every((value) => value !== undefined) && labels.length > 0 ? [{ slot, path }] : [];
    });
    located.sort((a, b) => comparePaths(a.path, b.path));
    const levels = labels.map(() => [] as { readonly value: string; readonly parent: number }[]);
    const leaves: number[][] = [];
    let before: readonly string[] = [];
    for (const { slot, path } of located) {
      const same = path.findIndex((value, level) => value !== before[level]);
      for (let level = same < 0 ? labels.length : same; level < labels.length; level++) {
        levels[level]?.push({ value: path[level] as string, parent: (levels[level - 1]?.length ?? 0) - 1 });
        if (level === labels.length - 1) leaves.push([]);
      }
      leaves.at(-1)?.push(slot);
      before = path;
    }
    this.starts = levels.reduce((starts, level) => [...starts, (starts.at(-1) ?? 0) + level.length], [0]);
    this.parents = Int32Array.from(
      levels.flatMap((level, at) => level.map(({ parent }) => (at === 0 ? -1 : parent + (this.starts[at - 1] ?? 0)))),
    );
    this.#values = levels.flatMap((level) => level.map(({ value }) => value));
    this.#slots = leaves;
    this.leafAt = new Int32Array(nodes.length).fill(NO_LEAF);
    for (const [at, slots] of leaves.entries()) for (const slot of slots) this.leafAt[slot] = this.leafStart + at;
  }

  /** How many levels there are. */
  get depth(): number {
    return this.starts.length - 1;
  }

  /** How many domains there are. */
  get size(): number {
    return this.starts.at(-1) as number;
  }

  /** The number of the first leaf. */
  get leafStart(): number {
    return this.starts[this.depth - 1] ?? 0;
  }

  /** The slots of the nodes in a leaf. */
  slotsIn(leaf: number): readonly number[] {
    return this.#slots[leaf - this.leafStart] ?? [];
  }

  /** The values of a domain's labels, coarse to fine. */
  pathOf(domain: number): readonly string[] {
    const path: string[] = [];
    for (let at = domain; at >= 0; at = this.parents[at] as number) path.unshift(this.#values[at] as string);
    return path;
  }

  /** The domain of a level that a domain of a finer level, or of the same, is in. */
  above(domain: number, level: number): number {
    let at = domain;
    while (at >= (this.starts[level + 1] as number)) at = this.parents[at] as number;
    return at;
  }
}

function comparePaths(one: readonly (string | undefined)[], other: readonly (string | undefined)[]): number {
  for (const [level, value] of one.entries()) {
    const order = compareText(value ?? "", other[level] ?? "");
    if (order !== 0) return order;
  }
  return 0;
}
