import type { FitClass } from "./fit-classes.ts";
import type { FreeCapacity } from "./free-capacity.ts";

/** Some pods of one class. */
export type FitGroup = { readonly fit: FitClass; readonly count: number };

/** `all`: they are placed. Otherwise nothing is placed, and best fit would place `placed` of them. */
export type PlaceResult = { readonly all: boolean; readonly placed: number };

/**
 * Larger gangs are not searched exhaustively: a search would cost the plan more time than a rare placement is worth.
 */
const SEARCHED_PODS_MAX = 16;
const SEARCH_STEPS_MAX = 300;
/** The largest groups, up to this number, are each tried first. Each try places all pods again. */
const LEADERS_MAX = 8;

/**
 * Places all pods, or none. The groups are of different classes, those of the largest requests first. Pods of one class
 * are placed whenever that is possible. Groups can take each other's nodes. So if best fit fails, other groups are
 * tried first, and small gangs are searched exhaustively.
 */
export function placeAll(free: FreeCapacity, groups: readonly FitGroup[]): PlaceResult {
  const mark = free.mark;
  const need = groups.reduce((sum, { count }) => sum + count, 0);
  const placed = placeInOrder(free, groups);
  if (placed === need) return { all: true, placed };
  free.undo(mark);
  const failed = { all: false, placed };
  if (groups.length < 2 || !eachFits(free, groups)) return failed;
  for (const order of otherOrders(groups)) {
    if (placeInOrder(free, order) === need) return { all: true, placed: need };
    free.undo(mark);
  }
  return need <= SEARCHED_PODS_MAX && search(free, groups) ? { all: true, placed: need } : failed;
}

/** The orders that are tried after that of the groups themselves. */
function otherOrders(groups: readonly FitGroup[]): readonly (readonly FitGroup[])[] {
  const leaders = groups.slice(1, 1 + LEADERS_MAX);
  return leaders.map((leader) => [leader, ...groups.filter((group) => group !== leader)]);
}

/** True if so many pods of a class fit. */
type IsEnough = (fit: FitClass, count: number) => boolean;

/** True if the pods of each group fit, whatever the other groups take. */
export function eachFits(free: FreeCapacity, groups: readonly FitGroup[]): boolean {
  return groups.every(({ fit, count }) => free.fitting(fit, count) >= count);
}

/**
 * True if `placeAll` surely places some groups: in an order that it tries, each leaves enough places for those after,
 * whichever nodes it takes. Expects that the pods of each group alone fit: pods of one class are placed whenever enough
 * of them do. `isEnough` tells that.
 */
export function surelyFit(groups: readonly FitGroup[], isEnough: IsEnough): boolean {
  return leavesEnough(groups, isEnough) || otherOrders(groups).some((order) => leavesEnough(order, isEnough));
}

/** True if the pods of each group but the first fit, whichever nodes those of the groups before it take. */
function leavesEnough(groups: readonly FitGroup[], isEnough: IsEnough): boolean {
  return groups.every(({ fit, count }, at) => {
    if (at === 0) return true;
    const taken = groups.slice(0, at).reduce((sum, other) => sum + other.count * placesTaken(other.fit, fit), 0);
    return isEnough(fit, count + taken);
  });
}

/** The places for pods of one class that a pod of another class takes at most on a node. */
function placesTaken(other: FitClass, fit: FitClass): number {
  let most = 0;
  for (const [at, column] of fit.columns.entries()) {
    const amount = other.amounts[other.columns.indexOf(column)] ?? 0;
    most = Math.max(most, Math.ceil(amount / (fit.amounts[at] as number)));
  }
  return most;
}

/** True if all pods of some groups fit. Places nothing. */
export function fitGroups(free: FreeCapacity, groups: readonly FitGroup[]): boolean {
  return eachFits(free, groups) && fitTogether(free, groups, (fit, count) => free.fitting(fit, count) >= count);
}

/** The same for groups whose pods alone fit. Places nothing. */
export function fitTogether(free: FreeCapacity, groups: readonly FitGroup[], isEnough: IsEnough): boolean {
  if (surelyFit(groups, isEnough)) return true;
  const { mark } = free;
  const { all } = placeAll(free, groups);
  free.undo(mark);
  return all;
}

/** Places as many pods as best fit does, the groups in this order. */
export function placeInOrder(free: FreeCapacity, groups: readonly FitGroup[]): number {
  let placed = 0;
  for (const { fit, count } of groups) placed += free.place(fit, count);
  return placed;
}

/** Tries every pod on every node that takes it, tightest first. False if the steps run out or no way works. */
function search(free: FreeCapacity, groups: readonly FitGroup[]): boolean {
  return new Search(free, groups).from(0);
}

class Search {
  readonly #free: FreeCapacity;
  readonly #fits: readonly FitClass[];
  readonly #pods: readonly FitClass[];
  readonly #start: number;
  /** Descriptions of the nodes in use before their first pod. */
  readonly #before = new Map<number, string>();
  /** Descriptions of the ways that do not work. */
  readonly #dead = new Set<string>();
  #steps = 0;

  constructor(free: FreeCapacity, groups: readonly FitGroup[]) {
    this.#free = free;
    this.#fits = groups.map(({ fit }) => fit);
    this.#pods = groups.flatMap(({ fit, count }) => Array.from({ length: count }, () => fit));
    this.#start = free.mark;
  }

  /** Places the pods from a place in their order on. */
  from(at: number): boolean {
    const fit = this.#pods[at];
    if (fit === undefined) return true;
    const key = `${at} ${this.#describeUsed()}`;
    if (this.#dead.has(key)) return false;
    for (const slot of this.#alternatives(fit)) {
      this.#steps += 1;
      if (this.#steps > SEARCH_STEPS_MAX) return false;
      const { mark } = this.#free;
      this.#free.put(fit, slot, 1);
      if (this.from(at + 1)) return true;
      this.#free.undo(mark);
    }
    this.#dead.add(key);
    return false;
  }

  /** One of each kind of nodes that take a pod. */
  #alternatives(fit: FitClass): readonly number[] {
    const kinds = new Map<string, number>();
    for (const slot of this.#free.tightest(fit)) {
      const kind = this.#free.describe(this.#fits, slot);
      if (kinds.has(kind)) continue;
      kinds.set(kind, slot);
      if (!this.#before.has(slot)) this.#before.set(slot, kind);
    }
    return [...kinds.values()];
  }

  #describeUsed(): string {
    const used = [...new Set(this.#free.placedAfter(this.#start).map(({ slot }) => slot))];
    const kinds = used.map((slot) => `${this.#before.get(slot)} ${this.#free.describe(this.#fits, slot)}`);
    return kinds.sort().join(";");
  }
}
