import { compareText } from "../../../runtime/compare-text.ts";
import type { Resources } from "../../pods/resources.ts";
import type { NodeCapacity } from "../snapshot.ts";
import { Amounts } from "./amounts.ts";
import {
  allows,
  type FitClass,
  type FitClasses,
  type KeySet,
  NO_NODE,
  nodeClassOf,
  type Rules,
} from "./fit-classes.ts";
import { type Fullness, LabelSums } from "./label-sums.ts";
import { MostFree } from "./most-free.ts";
import { ranksByName } from "./node-ranks.ts";
import { type Placement, PlacementTrail } from "./placement-trail.ts";
import { SlotSet } from "./slot-set.ts";

const SLOTS_MIN = 8;

/**
 * The nodes of one cluster and the room that is left on each. Resources are columns; the amounts of all nodes in a
 * column are one array. A node's place in these arrays is its slot. Placements are kept in a trail, so that they can be
 * undone.
 */
export class ClusterRoom {
  readonly fits: FitClasses;
  /** By slot. Null: the slot is not in use. */
  #nodes: (NodeCapacity | null)[] = [];
  readonly #unused: number[] = [];
  #slots = new Map<string, number>();
  readonly #classes = new Map<KeySet, Int32Array>();
  readonly #sums = new LabelSums();
  readonly #most = new MostFree();
  #capacity = 0;
  /** The free amounts that the observer saw, and those that are left after placements. */
  readonly #seen = new Amounts();
  readonly #free = new Amounts();
  readonly #allocatable = new Amounts();
  /** The free amounts and the classes when the room was remembered, and the slots that placements have used since. */
  readonly #before = new Amounts();
  readonly #classesBefore = new Map<KeySet, Int32Array>();
  readonly #touched = new SlotSet();
  /** The place of each slot's node by its name. Null: nodes came or went since it was made. */
  #rank: Int32Array | null = null;
  #open = new Int32Array(0);
  #waste = new Float64Array(0);
  readonly #trail = new PlacementTrail();

  constructor(fits: FitClasses) {
    this.fits = fits;
  }

  /** The number of slots, those that are not in use included. */
  get slotCount(): number {
    return this.#nodes.length;
  }

  /** The nodes with the amounts that are left on them, by name. */
  nodesNow(): readonly NodeCapacity[] {
    const nodes = this.#nodes.flatMap((node, slot) => {
      return node === null ? [] : [{ ...node, free: this.#freeOf(node, slot) }];
    });
    return nodes.sort((a, b) => compareText(a.name, b.name));
  }

  node(name: string): NodeCapacity | undefined {
    const slot = this.#slots.get(name);
    return slot === undefined ? undefined : (this.#nodes[slot] ?? undefined);
  }

  slotOf(node: string): number | undefined {
    return this.#slots.get(node);
  }

  nodeAt(slot: number): NodeCapacity | null {
    return this.#nodes[slot] ?? null;
  }

  /** The class of a slot's node among those that rules with these keys tell apart. `NO_NODE`: there is none. */
  classAt(keys: KeySet, slot: number): number {
    return this.#classesOf(keys)[slot] as number;
  }

  freeAt(column: number, slot: number): number {
    return this.#free.at(column, slot);
  }

  allocatableAt(column: number, slot: number): number {
    return this.#allocatable.at(column, slot);
  }

  /** Sets what the observer saw of a node. Null removes it. Call `reset` before the room is used. */
  setNode(name: string, node: NodeCapacity | null): void {
    const slot = this.#slots.get(name);
    if (node !== null) this.#put(slot ?? this.#add(name), node);
    else if (slot !== undefined) this.#remove(name, slot);
  }

  /** Takes all placements off the nodes: the room is what the observer saw. */
  reset(): void {
    this.#free.copy(this.#seen);
    this.#trail.clear();
    this.#sums.clear();
    this.#most.clear();
  }

  /**
   * Becomes another room as that was remembered, but takes placements of its own. It is void once that one's nodes
   * change, since both share what they know of these.
   */
  becomeRemembered(other: ClusterRoom): void {
    this.#nodes = other.#nodes;
    this.#slots = other.#slots;
    this.#rank = null;
    this.#classes.clear();
    if (this.#capacity !== other.#capacity) this.#grow(other.#capacity);
    for (const [keys, classes] of other.#classes) this.#classes.set(keys, classes);
    this.#seen.copy(other.#before);
    this.#allocatable.copy(other.#allocatable);
    this.reset();
  }

  /** Remembers the room as it is, for `gained`. */
  remember(): void {
    this.#before.copy(this.#free);
    for (const [keys, classes] of this.#classes) {
      const before = this.#classesBefore.get(keys);
      if (before?.length === classes.length) before.set(classes);
      else this.#classesBefore.set(keys, classes.slice());
    }
    this.#touched.keep(() => false);
  }

  /** The slots whose nodes have other amounts left, or are of another class, than when the room was remembered. */
  changed(): readonly number[] {
    const changed = new Set<number>();
    for (let slot = 0; slot < this.#nodes.length; slot++) {
      if (this.#free.differs(this.#before, slot)) changed.add(slot);
    }
    for (const [keys, now] of this.#classes) {
      const before = this.#classesBefore.get(keys);
      for (let slot = 0; slot < this.#nodes.length; slot++) {
        if (now[slot] !== (before?.[slot] ?? NO_NODE)) changed.add(slot);
      }
    }
    return [...changed];
  }

  /** Leaves out of `touched` the slots that have what they had again. */
  dropUntouched(): void {
    this.#touched.keep((slot) => this.#free.differs(this.#before, slot));
  }

  /** The slots on which pods were placed since the room was remembered. */
  get touched(): readonly number[] {
    return this.#touched.slots;
  }

  /** How many more pods of a class fit on a slot than when the room was remembered. */
  gained(fit: FitClass, slot: number): number {
    const most = Number.POSITIVE_INFINITY;
    const now = this.allowedNow(fit.rules, slot) ? this.#free.podsIn(fit, slot, most) : 0;
    return now - (this.allowedBefore(fit.rules, slot) ? this.#before.podsIn(fit, slot, most) : 0);
  }

  /** True if rules allow a slot's node now, or did when the room was remembered. */
  allowedNow(rules: Rules, slot: number): boolean {
    return allows(rules, this.#classesOf(rules.keys)[slot] as number);
  }

  allowedBefore(rules: Rules, slot: number): boolean {
    return allows(rules, this.#classesBefore.get(rules.keys)?.[slot] ?? NO_NODE);
  }

  /** What a slot had left of a column when the room was remembered. */
  freeBefore(column: number, slot: number): number {
    return this.#before.at(column, slot);
  }

  /** False: surely no pod of a class fits now. True: one may. */
  mayTake(fit: FitClass): boolean {
    const known = this.#most.knownOf(fit, this.mark);
    if (known !== null) return known;
    const classes = this.#classesOf(fit.rules.keys);
    return this.#most.mayTake(fit, { placed: this.mark, free: this.#free, classes, slots: this.#nodes.length });
  }

  /** How many more pods of a class fit now, at most `max`. */
  fitting(fit: FitClass, max: number): number {
    if (!this.mayTake(fit)) return 0;
    const classes = this.#classesOf(fit.rules.keys);
    let sum = 0;
    for (let slot = 0; slot < this.#nodes.length && sum < max; slot++) {
      if (allows(fit.rules, classes[slot] as number)) sum += this.#free.podsIn(fit, slot, max - sum);
    }
    return sum;
  }

  /** Places pods, each on the node that then has least room left, and returns how many it has placed. */
  place(fit: FitClass, count: number): number {
    let waiting = count;
    let open = this.mayTake(fit) ? this.#openFor(fit) : 0;
    const queue = this.#open;
    for (let at = (open >> 1) - 1; at >= 0; at--) this.#sink(queue, { at, size: open }, fit);
    while (open > 0 && waiting > 0) {
      const slot = queue[0] as number;
      open -= 1;
      queue[0] = queue[open] as number;
      if (open > 1) this.#sink(queue, { at: 0, size: open }, fit);
      const pods = this.#free.podsIn(fit, slot, waiting);
      this.put(fit, slot, pods);
      waiting -= pods;
    }
    return count - waiting;
  }

  /** The slots that take one more pod of a class, tightest first. */
  tightest(fit: FitClass): readonly number[] {
    return [...this.#open.subarray(0, this.#openFor(fit))].sort((a, b) => (this.#tighter(fit, a, b) ? -1 : 1));
  }

  /** Puts pods on one node, which must take them. */
  put(fit: FitClass, slot: number, pods: number): void {
    this.#trail.add({ slot, fit, pods });
    if (pods < 0) this.#most.clear();
    this.#move(fit, slot, -pods);
  }

  /** Puts pods on a node, also above what it has left; below 0 takes them off. Does nothing without such a node. */
  shift(node: string, fit: FitClass, pods: number): void {
    const slot = this.#slots.get(node);
    if (slot !== undefined) this.put(fit, slot, pods);
  }

  /** A point to which `undo` can go back. It is void after `reset`. */
  get mark(): number {
    return this.#trail.length;
  }

  /** Names what is left on the nodes: the same number only if it is the same. */
  get state(): number {
    return this.#trail.state;
  }

  undo(mark: number): void {
    this.#most.undo(mark);
    this.#trail.takeBack(mark, (fit, slot, pods) => this.#move(fit, slot, pods));
  }

  /** The placements after a mark. */
  placedAfter(mark: number): readonly Placement[] {
    return this.#trail.after(mark);
  }

  /** Names everything about a slot that pods of these classes can tell apart. */
  describe(fits: readonly FitClass[], slot: number): string {
    const classes = fits.map(({ rules }) => this.#classesOf(rules.keys)[slot]);
    return `${classes.join()} ${this.#free.columns.map((amounts) => amounts[slot]).join()}`;
  }

  /**
   * The part of a resource that would be in use on the nodes with these labels once `more` of it is placed there, 0 to
   * 1. It is 1 if the nodes have none of it.
   */
  fullness(of: Fullness, more: number): number {
    const column = this.fits.columns.of(of.resource);
    const amounts = { column, free: this.#free.column(column), allocatable: this.#allocatable.column(column) };
    const { free, allocatable } = this.#sums.get(of, this.#nodes, amounts);
    return allocatable === 0 ? 1 : 1 - (free - more) / allocatable;
  }

  #freeOf(node: NodeCapacity, slot: number): Resources {
    const free: Record<string, number> = { ...node.free };
    for (const [column, amounts] of this.#free.columns.entries()) {
      const name = this.fits.columns.nameOf(column);
      if (name in free || amounts[slot] !== 0) free[name] = amounts[slot] as number;
    }
    return free;
  }

  #add(name: string): number {
    const slot = this.#unused.pop() ?? this.#nodes.length;
    if (slot >= this.#capacity) this.#grow(Math.max(SLOTS_MIN, this.#capacity * 2));
    this.#slots.set(name, slot);
    this.#rank = null;
    return slot;
  }

  #put(slot: number, node: NodeCapacity): void {
    this.#nodes[slot] = node;
    this.#seen.set(slot, node.free, this.fits.columns);
    this.#allocatable.set(slot, node.allocatable, this.fits.columns);
    for (const [keys, classes] of this.#classes) classes[slot] = nodeClassOf(keys, node);
    this.#sums.setNode(slot, node);
  }

  #remove(name: string, slot: number): void {
    this.#nodes[slot] = null;
    this.#seen.set(slot, {}, this.fits.columns);
    this.#allocatable.set(slot, {}, this.fits.columns);
    for (const classes of this.#classes.values()) classes[slot] = NO_NODE;
    this.#sums.setNode(slot, null);
    this.#slots.delete(name);
    this.#unused.push(slot);
    this.#rank = null;
  }

  #grow(capacity: number): void {
    this.#capacity = capacity;
    for (const amounts of [this.#seen, this.#free, this.#allocatable, this.#before]) amounts.grow(this.#capacity);
    for (const [keys, old] of this.#classes) {
      const classes = new Int32Array(this.#capacity);
      classes.set(old);
      this.#classes.set(keys, classes);
    }
    this.#touched.grow(this.#capacity);
    this.#open = new Int32Array(this.#capacity);
    this.#waste = new Float64Array(this.#capacity);
  }

  #classesOf(keys: KeySet): Int32Array {
    const known = this.#classes.get(keys);
    if (known !== undefined) return known;
    const classes = new Int32Array(this.#capacity);
    for (const [slot, node] of this.#nodes.entries()) classes[slot] = node === null ? NO_NODE : nodeClassOf(keys, node);
    this.#classes.set(keys, classes);
    // No rules with these keys have looked at the room before.
    this.#classesBefore.set(keys, classes.slice());
    return classes;
  }

  /** Collects the slots that take one more pod of a class, and what each would waste; returns their number. */
  #openFor(fit: FitClass): number {
    const classes = this.#classesOf(fit.rules.keys);
    const wastes = this.fits.wastesOf(fit);
    let open = 0;
    for (let slot = 0; slot < this.#nodes.length; slot++) {
      if (this.#free.podsIn(fit, slot, 1) === 0 || !allows(fit.rules, classes[slot] as number)) continue;
      this.#open[open] = slot;
      open += 1;
      let waste = 0;
      for (const column of wastes) waste += Math.max(0, this.#free.at(column, slot));
      this.#waste[slot] = waste;
    }
    return open;
  }

  /** True if a slot's node comes before another's by name. A slot below 0 comes last. */
  isNamedBefore(slot: number, other: number): boolean {
    const rank = this.#ranks();
    return other < 0 || (rank[slot] as number) < (rank[other] as number);
  }

  #sink(queue: Int32Array, from: { readonly at: number; readonly size: number }, fit: FitClass): void {
    let { at } = from;
    const slot = queue[at] as number;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= from.size) break;
      if (below + 1 < from.size && this.#tighter(fit, queue[below + 1] as number, queue[below] as number)) below += 1;
      if (!this.#tighter(fit, queue[below] as number, slot)) break;
      queue[at] = queue[below] as number;
      at = below;
    }
    queue[at] = slot;
  }

  /** True if slot `a` comes before `b`: it wastes fewer devices, then it has less free of the pod's resources. */
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

  /** Adds the amounts of `pods` pods to a node; below 0 takes them. */
  #move(fit: FitClass, slot: number, pods: number): void {
    this.#touched.add(slot);
    for (let at = 0; at < fit.columns.length; at++) {
      const column = fit.columns[at] as number;
      const amount = pods * (fit.amounts[at] as number);
      this.#free.column(column)[slot] = this.#free.at(column, slot) + amount;
      this.#sums.add(column, slot, amount);
    }
  }
}
