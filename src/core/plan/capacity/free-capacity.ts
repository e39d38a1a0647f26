import { compareText } from "../../../runtime/compare-text.ts";
import { getOrCreate } from "../../../runtime/get-or-create.ts";
import type { Resources } from "../../pods/resources.ts";
import type { NodeCapacity } from "../model/snapshot.ts";
import { Amounts } from "./amounts.ts";
import { BestFit } from "./best-fit.ts";
import { DomainOrder, DomainSums } from "./domain-sums.ts";
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
import { Levels, type Topologies } from "./levels.ts";
import { MostFree } from "./most-free.ts";
import type { NodeDomains } from "./node-domains.ts";
import { type PlacedOnSlot, PlacementTrail } from "./placement-trail.ts";
import { Remembered } from "./remembered.ts";

const SLOTS_MIN = 8;

/**
 * The nodes of one cluster and the capacity that is left on each. Resources are columns; the amounts of all nodes in a
 * column are one array. A node's place in these arrays is its slot. Placements are kept in a trail, so that they can be
 * undone.
 */
export class FreeCapacity {
  readonly fits: FitClasses;
  /** By slot. Null: the slot is not in use. */
  #nodes: (NodeCapacity | null)[] = [];
  readonly #unused: number[] = [];
  #slots = new Map<string, number>();
  readonly #classes = new Map<KeySet, Int32Array>();
  readonly #sums = new LabelSums();
  readonly #most = new MostFree();
  #levels: Levels;
  readonly #domainSums: DomainSums;
  #capacity = 0;
  /** The free amounts that the observer saw, and those that are left after placements. */
  readonly #seen: Amounts;
  readonly #free: Amounts;
  readonly #allocatable: Amounts;
  readonly #before: Remembered;
  readonly #bestFit: BestFit;
  readonly #trail = new PlacementTrail();
  /** The slots that take pods at the moment, and the classes of their nodes by keys. Null: all do. */
  #only: { readonly slots: ReadonlySet<number>; readonly classes: Map<KeySet, Int32Array> } | null = null;

  constructor(fits: FitClasses) {
    this.fits = fits;
    const made = () => new Amounts(fits.columns);
    [this.#seen, this.#free, this.#allocatable] = [made(), made(), made()];
    this.#before = new Remembered(made());
    this.#bestFit = new BestFit(this.#free);
    this.#bestFit.setNodes(this.#nodes);
    this.#levels = new Levels(fits.columns);
    this.#domainSums = new DomainSums(this.#free);
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

  /** Sets the levels of the nodes. Null: they have none. Call `reset` before the capacity is used. */
  setTopology(topologies: Topologies | null): void {
    this.#levels.set(topologies, { nodes: this.#nodes, capacity: this.#capacity });
  }

  /** Sets what the observer saw of a node. Null removes it. Call `reset` before the capacity is used. */
  setNode(name: string, node: NodeCapacity | null): void {
    const slot = this.#slots.get(name);
    if (node !== null) this.#put(slot ?? this.#add(name), node);
    else if (slot !== undefined) this.#remove(name, slot);
  }

  /** Takes all placements off the nodes: the capacity is what the observer saw. */
  reset(): void {
    this.#free.copy(this.#seen);
    this.#trail.clear();
    this.#sums.clear();
    this.#domainSums.clear();
    this.#most.clear();
  }

  /**
   * Becomes what another one was when it was remembered, but takes placements of its own. It is void once that one's
   * nodes change, since both share what they know of these.
   */
  becomeRemembered(other: FreeCapacity): void {
    this.#nodes = other.#nodes;
    this.#slots = other.#slots;
    this.#levels = other.#levels;
    this.#bestFit.setNodes(this.#nodes);
    this.#classes.clear();
    if (this.#capacity !== other.#capacity) this.#growAmounts(other.#capacity);
    for (const [keys, classes] of other.#classes) this.#classes.set(keys, classes);
    this.#seen.copy(other.#before.free);
    this.#allocatable.copy(other.#allocatable);
    this.reset();
  }

  /** Remembers the capacity as it is, for `gained`. */
  remember(): void {
    this.#before.become(this.#free, this.#classes);
  }

  /** The slots whose nodes have other amounts left, or are of another class, than when the capacity was remembered. */
  changed(): readonly number[] {
    return this.#before.changed(this.#free, this.#classes, this.#nodes.length);
  }

  /** Leaves out of `touched` the slots that have what they had again. */
  dropUntouched(): void {
    this.#before.dropUntouched(this.#free);
  }

  /** The slots on which pods were placed since the capacity was remembered. */
  get touched(): readonly number[] {
    return this.#before.touched;
  }

  /** How many more pods of a class fit on a slot than when the capacity was remembered. */
  gained(fit: FitClass, slot: number): number {
    const most = Number.POSITIVE_INFINITY;
    const now = this.allowedNow(fit.rules, slot) ? this.#free.podsIn(fit, slot, most) : 0;
    return now - (this.allowedBefore(fit.rules, slot) ? this.#before.free.podsIn(fit, slot, most) : 0);
  }

  /** True if rules allow a slot's node now, or did when the capacity was remembered. */
  allowedNow(rules: Rules, slot: number): boolean {
    return allows(rules, this.#classesOf(rules.keys)[slot] as number);
  }

  allowedBefore(rules: Rules, slot: number): boolean {
    return allows(rules, this.#before.classAt(rules.keys, slot));
  }

  /** The free amount of a slot in a column when the capacity was remembered. */
  freeBefore(column: number, slot: number): number {
    return this.#before.free.at(column, slot);
  }

  /** How many more pods of a class fit on a slot now, at most `max`. */
  podsAt(fit: FitClass, slot: number, max = Number.POSITIVE_INFINITY): number {
    return this.allowedNow(fit.rules, slot) ? this.#free.podsIn(fit, slot, max) : 0;
  }

  /** The domains of the nodes for pods of a class. Null: the nodes have no levels. */
  domainsFor(fit: FitClass): NodeDomains | null {
    return this.#levels.of(fit);
  }

  /** Runs something for which only some slots take pods, of those that do now. What it places stays. */
  within<T>(slots: readonly number[], run: () => T): T {
    const before = this.#only;
    const open = before === null ? slots : slots.filter((slot) => before.slots.has(slot));
    this.#only = { slots: new Set(open), classes: new Map() };
    try {
      return run();
    } finally {
      this.#only = before;
    }
  }

  /** False: surely no pod of a class fits now. True: one may. */
  mayTake(fit: FitClass): boolean {
    // What is known is about all nodes.
    if (this.#only !== null) return true;
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

  /** Places pods, each on the node that comes first then, and returns how many it has placed. */
  place(fit: FitClass, count: number): number {
    if (!this.mayTake(fit)) return 0;
    let waiting = count;
    this.#bestFit.begin(fit, this.#slotsFor(fit), count);
    while (waiting > 0) {
      const slot = this.#bestFit.next(fit);
      if (slot < 0) break;
      const pods = this.#free.podsIn(fit, slot, waiting);
      this.put(fit, slot, pods);
      waiting -= pods;
    }
    return count - waiting;
  }

  /** The slots that take one more pod of a class, in the order of `place` as the capacity is now. */
  tightest(fit: FitClass): readonly number[] {
    return this.#bestFit.tightest(fit, this.#slotsFor(fit));
  }

  /** The names of the first nodes that take one more pod of a class, the tightest first. */
  firstFor(fit: FitClass, max: number): readonly string[] {
    const names: string[] = [];
    if (!this.mayTake(fit)) return names;
    this.#bestFit.begin(fit, this.#slotsFor(fit), 1);
    while (names.length < max) {
      const slot = this.#bestFit.next(fit);
      if (slot < 0) break;
      names.push(this.#nodes[slot]?.name ?? "");
    }
    return names;
  }

  /** Places pods on one node, as many of them as it takes, and returns how many it has placed. */
  placeOn(node: string, fit: FitClass, count: number): number {
    const slot = this.#slots.get(node);
    if (slot === undefined || !this.allowedNow(fit.rules, slot)) return 0;
    const pods = this.#free.podsIn(fit, slot, count);
    if (pods > 0) this.put(fit, slot, pods);
    return pods;
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
  placedAfter(mark: number): readonly PlacedOnSlot[] {
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
      if (name in free || amounts[slot] !== this.fits.columns.baseOf(column)) free[name] = amounts[slot] as number;
    }
    return free;
  }

  #add(name: string): number {
    const slot = this.#unused.pop() ?? this.#nodes.length;
    if (slot >= this.#capacity) this.#grow(Math.max(SLOTS_MIN, this.#capacity * 2));
    this.#slots.set(name, slot);
    this.#bestFit.forgetNames();
    return slot;
  }

  #put(slot: number, node: NodeCapacity): void {
    this.#nodes[slot] = node;
    this.#seen.set(slot, { ...node.free, ...Object.fromEntries((node.hostPorts ?? []).map((port) => [port, 0])) });
    this.#allocatable.set(slot, node.allocatable);
    for (const [keys, classes] of this.#classes) classes[slot] = nodeClassOf(keys, node);
    this.#sums.setNode(slot, node);
    this.#levels.setNode(slot, node);
  }

  #remove(name: string, slot: number): void {
    this.#nodes[slot] = null;
    this.#seen.set(slot, {});
    this.#allocatable.set(slot, {});
    for (const classes of this.#classes.values()) classes[slot] = NO_NODE;
    this.#sums.setNode(slot, null);
    this.#levels.setNode(slot, null);
    this.#slots.delete(name);
    this.#unused.push(slot);
    this.#bestFit.forgetNames();
  }

  #grow(capacity: number): void {
    this.#levels.grow(capacity);
    this.#growAmounts(capacity);
  }

  #growAmounts(capacity: number): void {
    this.#capacity = capacity;
    for (const amounts of [this.#seen, this.#free, this.#allocatable]) amounts.grow(this.#capacity);
    this.#before.grow(this.#capacity);
    this.#bestFit.grow(this.#capacity);
    for (const [keys, old] of this.#classes) {
      const classes = new Int32Array(this.#capacity);
      classes.set(old);
      this.#classes.set(keys, classes);
    }
  }

  #classesOf(keys: KeySet): Int32Array {
    const all = this.#allClassesOf(keys);
    if (this.#only === null) return all;
    const { slots, classes } = this.#only;
    return getOrCreate(classes, keys, () => all.map((nodeClass, slot) => (slots.has(slot) ? nodeClass : NO_NODE)));
  }

  #allClassesOf(keys: KeySet): Int32Array {
    const known = this.#classes.get(keys);
    if (known !== undefined) return known;
    const classes = new Int32Array(this.#capacity);
    for (const [slot, node] of this.#nodes.entries()) classes[slot] = node === null ? NO_NODE : nodeClassOf(keys, node);
    this.#classes.set(keys, classes);
    // No rules with these keys have looked at the capacity before.
    this.#before.addClasses(keys, classes);
    return classes;
  }

  #slotsFor(fit: FitClass) {
    const classes = this.#classesOf(fit.rules.keys);
    return { classes, wastes: this.fits.wastesOf(fit), count: this.#nodes.length, order: this.#orderFor(fit) };
  }

  /** The order of domains for pods of a class. Null: the cluster has no levels for them. */
  #orderFor(fit: FitClass): DomainOrder | null {
    const domains = this.#levels.of(fit);
    if (domains === null) return null;
    const devices = this.fits.devicesOf(fit);
    // A pod without devices looks at all devices together.
    const counted = devices.length > 0 ? devices.map((column) => [column]) : [this.fits.wastesOf(fit)];
    return new DomainOrder(
      domains,
      counted.map((columns) => this.#domainSums.of(domains, columns)),
    );
  }

  /** True if a slot's node comes before another's by name. A slot below 0 comes last. */
  isNamedBefore(slot: number, other: number): boolean {
    return this.#bestFit.isNamedBefore(slot, other);
  }

  /** Adds the amounts of `pods` pods to a node; below 0 takes them. */
  #move(fit: FitClass, slot: number, pods: number): void {
    this.#before.touch(slot);
    for (let at = 0; at < fit.columns.length; at++) {
      const column = fit.columns[at] as number;
      const amount = pods * (fit.amounts[at] as number);
      const before = this.#free.at(column, slot);
      this.#free.column(column)[slot] = before + amount;
      this.#sums.add(column, slot, amount);
      this.#domainSums.move(column, slot, before);
    }
  }
}
