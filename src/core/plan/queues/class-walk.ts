import { Heap } from "../../../runtime/heap.ts";
import { compareAged, headOf } from "./order.ts";
import { type GangClass, type GangQueue, type GangRecord, written } from "./records.ts";

type Compare = (a: GangClass, b: GangClass) => number;

/**
 * The gang classes of a queue during one round, in the order of their first gangs. The order of all gang classes lasts
 * over rounds, until gangs come or go, or one grows older. A gang class whose first gang the round has admitted is kept
 * beside it.
 */
export class ClassWalk {
  readonly #order: readonly GangClass[];
  #at = 0;
  readonly #compare: Compare;
  /** Null: there was none. */
  #moved: Heap<GangClass> | null = null;
  #first: GangClass | null = null;

  private constructor(order: readonly GangClass[], compare: Compare) {
    this.#order = order;
    this.#compare = compare;
  }

  static ofAll(gangQueue: GangQueue, nowMs: number): ClassWalk {
    return new ClassWalk(classesInOrder(gangQueue, nowMs), comparesClasses(nowMs));
  }

  /** Those that are active, or for which something may have come, and some others. */
  static ofCandidates(gangQueue: GangQueue, nowMs: number): ClassWalk {
    const compare = comparesClasses(nowMs);
    const active = gangQueue.active.filter((gangClass) => headOf(gangClass) !== undefined);
    return new ClassWalk(active.length > 1 ? active.sort(compare) : active, compare);
  }

  /**
   * Returns the first gang class that has a gang and passes a test. It stays. Those before it are left out from now on.
   */
  peek(test: (gangClass: GangClass) => boolean): GangClass | null {
    for (;;) {
      this.#first ??= this.#next();
      if (this.#first === null) return null;
      if (headOf(this.#first) !== undefined && test(this.#first)) return this.#first;
      this.#first = null;
    }
  }

  /** Leaves the first gang class out from now on. */
  drop(): void {
    this.#first = null;
  }

  /** Puts the first gang class where it belongs by its next gang. */
  settle(): void {
    if (this.#first !== null && headOf(this.#first) !== undefined) {
      this.#moved ??= new Heap<GangClass>([], (a, b) => this.#compare(a, b) < 0);
      this.#moved.push(this.#first);
    }
    this.#first = null;
  }

  #next(): GangClass | null {
    const next = this.#order[this.#at];
    const moved = this.#moved?.peek();
    if (next === undefined || (moved !== undefined && this.#compare(moved, next) < 0)) {
      return this.#moved?.pop() ?? null;
    }
    this.#at += 1;
    return next;
  }
}

/** All gang classes of a queue in the order of their first gangs, before a round has admitted one. */
export function classesInOrder(gangQueue: GangQueue, nowMs: number): readonly GangClass[] {
  if (gangQueue.order !== null) return gangQueue.order;
  const order = [...gangQueue.classes.values()].sort(comparesClasses(nowMs));
  written(gangQueue).order = order;
  return order;
}

/** True if the first gang of a class comes after a gang of its queue. */
export function isBehind(gangClass: GangClass, first: GangRecord, nowMs: number): boolean {
  const gang = headOf(gangClass);
  return gang !== undefined && compareAged(gang, first, nowMs) > 0;
}

/** By their first gangs. Both gang classes have one. */
function comparesClasses(nowMs: number): Compare {
  return (a, b) => compareAged(headOf(a) as GangRecord, headOf(b) as GangRecord, nowMs);
}
