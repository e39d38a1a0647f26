import { compareText } from "../../../runtime/compare-text.ts";
import type { NodeCapacity } from "../model/snapshot.ts";
import type { Amounts } from "./amounts.ts";
import type { DomainOrder } from "./domain-sums.ts";
import { allows, type FitClass } from "./fit-classes.ts";

/** Some slots, the columns of devices that pods of a class would waste there, and the order of their domains. */
type Slots = {
  readonly classes: Int32Array;
  readonly wastes: readonly number[];
  readonly count: number;
  /** Null: the nodes have no levels. */
  readonly order: DomainOrder | null;
};

/**
 * The slots of a cluster that take one more pod of a class, the tightest first: the node that wastes fewest devices,
 * then the one whose domains have fewest free devices, coarse to fine, then the one that has least free of the pod's
 * resources, then the first by name. In a cluster with levels, pods that all fit one node take one.
 *
 * A pod changes the order of domains, but only for the better of its own. So once a pod has taken a domain, the others
 * stay in it until it is full. The domain is chosen by a look at all slots, and its slots are a heap.
 */
export class BestFit {
  readonly #free: Amounts;
  #nodes: readonly (NodeCapacity | null)[] = [];
  /** The place of each slot's node by its name. Null: nodes came or went since it was made. */
  #rank: Int32Array | null = null;
  #order: DomainOrder | null = null;
  /** Slots whose domain was not chosen yet. */
  #open = new Int32Array(0);
  #openSize = 0;
  /** A slot was chosen in a domain that is not in the heap yet. Below 0: none. */
  #chosen = -1;
  /** A heap of slots. */
  #heap = new Int32Array(0);
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
    this.#heap = new Int32Array(capacity);
    this.#waste = new Float64Array(capacity);
  }

  /** Collects the slots for so many pods of a class. `next` takes them out. */
  begin(fit: FitClass, slots: Slots, pods: number): void {
    this.#order = slots.order;
    this.#chosen = -1;
    const collected = this.#collect(fit, slots, slots.order === null ? 1 : pods);
    // Pods without devices leave the order of domains as it is.
    if (slots.order?.isMovedBy(fit) ?? false) {
      this.#openSize = collected;
      this.#size = 0;
    } else {
      [this.#open, this.#heap] = [this.#heap, this.#open];
      this.#openSize = 0;
      this.#size = collected;
      this.#makeHeap(fit);
    }
  }

  /** Takes out the tightest slot. The order is exact if each then takes as many pods as fit. Below 0: none is left. */
  next(fit: FitClass): number {
    if (this.#chosen >= 0) this.#gather(fit, this.#chosen);
    if (this.#size > 0) return this.#pop(fit);
    if (this.#openSize > 0) this.#chosen = this.#takeFirst(fit);
    return this.#chosen;
  }

  /** The slots that take one more pod of a class, tightest first. */
  tightest(fit: FitClass, slots: Slots): readonly number[] {
    this.#order = slots.order;
    const collected = this.#collect(fit, slots, 1);
    return [...this.#open.subarray(0, collected)].sort((a, b) => (this.#tighter(fit, a, b) ? -1 : 1));
  }

  /** True if a slot's node comes before another's by name. A slot below 0 comes last. */
  isNamedBefore(slot: number, other: number): boolean {
    const rank = this.#ranks();
    return other < 0 || (rank[slot] as number) < (rank[other] as number);
  }

  /**
   * Collects the slots that take one more pod of a class, and what each would waste; only those that take so many pods
   * if there are such. Returns how many they are.
   */
  #collect(fit: FitClass, { classes, wastes, count }: Slots, pods: number): number {
    let open = 0;
    let least = 1;
    for (let slot = 0; slot < count; slot++) {
      // Rules are the cheaper test, and refuse most slots where a cluster has several flavors.
      if (!allows(fit.rules, classes[slot] as number)) continue;
      const fits = this.#free.podsIn(fit, slot, pods);
      if (fits < least) continue;
      if (fits === pods && least < pods) {
        least = pods;
        open = 0;
      }
      this.#open[open] = slot;
      open += 1;
      let waste = 0;
      for (const column of wastes) waste += Math.max(0, this.#free.at(column, slot));
      this.#waste[slot] = waste;
    }
    return open;
  }

  /** Takes the tightest of the slots whose domain was not chosen yet. */
  #takeFirst(fit: FitClass): number {
    let at = 0;
    for (let other = 1; other < this.#openSize; other++) {
      if (this.#tighter(fit, this.#open[other] as number, this.#open[at] as number)) at = other;
    }
    const slot = this.#open[at] as number;
    this.#openSize -= 1;
    this.#open[at] = this.#open[this.#openSize] as number;
    return slot;
  }

  /** Makes a heap of the slots in the domain of one, which waste as many devices. */
  #gather(fit: FitClass, chosen: number): void {
    this.#chosen = -1;
    const waste = this.#waste[chosen] as number;
    let left = 0;
    this.#size = 0;
    for (let at = 0; at < this.#openSize; at++) {
      const slot = this.#open[at] as number;
      if (this.#waste[slot] === waste && this.#order?.isTogether(slot, chosen)) this.#heap[this.#size++] = slot;
      else this.#open[left++] = slot;
    }
    this.#openSize = left;
    this.#makeHeap(fit);
  }

  #makeHeap(fit: FitClass): void {
    for (let at = (this.#size >> 1) - 1; at >= 0; at--) this.#sink(at, fit);
  }

  #pop(fit: FitClass): number {
    const slot = this.#heap[0] as number;
    this.#size -= 1;
    this.#heap[0] = this.#heap[this.#size] as number;
    if (this.#size > 1) this.#sink(0, fit);
    return slot;
  }

  #sink(from: number, fit: FitClass): void {
    const queue = this.#heap;
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
    const byDomain = this.#order?.compare(a, b) ?? 0;
    if (byDomain !== 0) return byDomain < 0;
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
