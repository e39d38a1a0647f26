import { compareText } from "../../../runtime/compare-text.ts";
import type { NodeCapacity } from "../model/snapshot.ts";
import type { Amounts } from "./amounts.ts";
import { allows, type FitClass } from "./fit-classes.ts";

/** Some slots, and the columns of devices that pods of a class would waste there. */
type Slots = { readonly classes: Int32Array; readonly wastes: readonly number[]; readonly count: number };

/**
 * The slots of a cluster that take one more pod of a class, the tightest first: the node that wastes fewest devices,
 * then the one that has least free of the pod's resources, then the first by name.
 */
export class BestFit {
  readonly #free: Amounts;
  #nodes: readonly (NodeCapacity | null)[] = [];
  /** The place of each slot's node by its name. Null: nodes came or went since it was made. */
  #rank: Int32Array | null = null;
  /** A heap of slots. */
  #open = new Int32Array(0);
  #size = 0;
  #waste = new Float64Array(0);

  constructor(free: Amounts) {
    this.#free = free;
  }

  /** Sets the nodes by slot, which may change in place if `forgetNames` is called then. */
  setNodes(nodes: readonly (NodeCapacity | null)[]): void {
    this.#nodes = nodes;
    this.#rank = null;
  }

  /** Records that nodes came or went. */
  forgetNames(): void {
    this.#rank = null;
  }

  grow(capacity: number): void {
    this.#open = new Int32Array(capacity);
    this.#waste = new Float64Array(capacity);
  }

  /** Collects the slots that take one more pod of a class. `next` takes them out. */
  begin(fit: FitClass, slots: Slots): void {
    this.#collect(fit, slots);
    for (let at = (this.#size >> 1) - 1; at >= 0; at--) this.#sink(at, fit);
  }

  /** Takes out the tightest slot. Below 0: none is left. */
  next(fit: FitClass): number {
    if (this.#size === 0) return -1;
    const slot = this.#open[0] as number;
    this.#size -= 1;
    this.#open[0] = this.#open[this.#size] as number;
    if (this.#size > 1) this.#sink(0, fit);
    return slot;
  }

  /** The slots that take one more pod of a class, tightest first. */
  tightest(fit: FitClass, slots: Slots): readonly number[] {
    this.#collect(fit, slots);
    return [...this.#open.subarray(0, this.#size)].sort((a, b) => (this.#tighter(fit, a, b) ? -1 : 1));
  }

  /** True if a slot's node comes before another's by name. A slot below 0 comes last. */
  isNamedBefore(slot: number, other: number): boolean {
    const rank = this.#ranks();
    return other < 0 || (rank[slot] as number) < (rank[other] as number);
  }

  /** Collects the slots that take one more pod of a class, and what each would waste. */
  #collect(fit: FitClass, { classes, wastes, count }: Slots): void {
    let open = 0;
    for (let slot = 0; slot < count; slot++) {
      if (this.#free.podsIn(fit, slot, 1) === 0 || !allows(fit.rules, classes[slot] as number)) continue;
      this.#open[open] = slot;
      open += 1;
      let waste = 0;
      for (const column of wastes) waste += Math.max(0, this.#free.at(column, slot));
      this.#waste[slot] = waste;
    }
    this.#size = open;
  }

  #sink(from: number, fit: FitClass): void {
    const queue = this.#open;
    const size = this.#size;
    let at = from;
    const slot = queue[at] as number;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= size) break;
      if (below + 1 < size && this.#tighter(fit, queue[below + 1] as number, queue[below] as number)) below += 1;
      if (!this.#tighter(fit, queue[below] as number, slot)) break;
      queue[at] = queue[below] as number;
      at = below;
    }
    queue[at] = slot;
  }

  /** True if slot `a` comes before `b`. */
  #tighter(fit: FitClass, a: number, b: number): boolean {
    const wasted = (this.#waste[a] as number) - (this.#waste[b] as number);
    if (wasted !== 0) return wasted < 0;
    for (const column of fit.columns) {
      const free = this.#free.column(column);
      const difference = (free[a] as number) - (free[b] as number);
      if (difference !== 0) return difference < 0;
    }
    const rank = this.#ranks();
    return (rank[a] as number) < (rank[b] as number);
  }

  #ranks(): Int32Array {
    this.#rank ??= ranksByName(this.#nodes);
    return this.#rank;
  }
}

/** The place of each slot's node in the order of their names. Slots without a node come first. */
function ranksByName(nodes: readonly (NodeCapacity | null)[]): Int32Array {
  const ranks = new Int32Array(nodes.length);
  const byName = [...nodes.keys()].sort((a, b) => compareText(nodes[a]?.name ?? "", nodes[b]?.name ?? ""));
  for (const [place, slot] of byName.entries()) ranks[slot] = place;
  return ranks;
}
