import { compareText } from "../../../runtime/compare-text.ts";
import { firstWhere } from "../../../runtime/first-where.ts";
import { append } from "../../../runtime/lists.ts";
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
    const { levels, leaves } = grouped(labels.length, locatedNodes(labels, nodes));
    const starts = [0];
    for (const level of levels) starts.push((starts.at(-1) ?? 0) + level.length);
    this.starts = starts;
    this.parents = Int32Array.from(
      levels.flatMap((level, at) => level.map(({ parent }) => (at === 0 ? -1 : parent + (starts[at - 1] ?? 0)))),
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

  /** The domains of a level, in the order of their paths. */
  domainsAt(level: number): readonly number[] {
    const from = this.starts[level] as number;
    return Array.from({ length: (this.starts[level + 1] as number) - from }, (_, at) => from + at);
  }

  /** The slots of the nodes in a leaf. */
  slotsIn(leaf: number): readonly number[] {
    return this.#slots[leaf - this.leafStart] ?? [];
  }

  /** The slots of all nodes in a domain. */
  slotsUnder(domain: number): readonly number[] {
    const { parents, starts, depth } = this;
    let [first, last] = [domain, domain];
    // The children of neighbours are neighbours, so the leaves of a domain are a range.
    for (let level = starts.findLastIndex((start) => start <= domain); level < depth - 1; level++) {
      const [from, to, before, after] = [starts[level + 1] as number, starts[level + 2] as number, first, last];
      first = firstWhere(from, to, (at) => (parents[at] as number) >= before);
      last = firstWhere(from, to, (at) => (parents[at] as number) > after) - 1;
    }
    const slots: number[] = [];
    for (let leaf = first; leaf <= last; leaf++) append(slots, this.slotsIn(leaf));
    return slots;
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

/** The slot of a node, and the values of its labels, coarse to fine. */
type Located = { readonly slot: number; readonly path: readonly string[] };

/** The nodes that have all labels, in the order of their paths. */
function locatedNodes(labels: readonly string[], nodes: readonly (NodeCapacity | null)[]): readonly Located[] {
  if (labels.length === 0) return [];
  const located = nodes.flatMap((node, slot): readonly Located[] => {
    const path = labels.flatMap((label) => node?.labels[label] ?? []);
    return path.length === labels.length ? [{ slot, path }] : [];
  });
  return located.sort((a, b) => comparePaths(a.path, b.path));
}

/** The domains of each level, with the place of the one above, and the slots of each leaf. */
function grouped(depth: number, located: readonly Located[]) {
  const levels = Array.from({ length: depth }, (): { readonly value: string; readonly parent: number }[] => []);
  const leaves: number[][] = [];
  let before: readonly string[] = [];
  for (const { slot, path } of located) {
    const differs = path.findIndex((value, level) => value !== before[level]);
    if (differs >= 0) leaves.push([]);
    for (let level = differs; level >= 0 && level < depth; level++) {
      levels[level]?.push({ value: path[level] as string, parent: (levels[level - 1]?.length ?? 0) - 1 });
    }
    leaves.at(-1)?.push(slot);
    before = path;
  }
  return { levels, leaves };
}

function comparePaths(one: readonly string[], other: readonly string[]): number {
  for (const [level, value] of one.entries()) {
    const order = compareText(value, other[level] ?? "");
    if (order !== 0) return order;
  }
  return 0;
}
