import { type Entry, headOf, type Lane, type Line } from "./gang-lines.ts";
import { Heap } from "./heap.ts";
import { compareAged } from "./line-ageing.ts";

type Compare = (a: Lane, b: Lane) => number;

/**
 * The lanes of a queue during one round, in the order of their first gangs. The order of all lanes lasts over rounds,
 * until gangs come or go, or one grows older.
 * A lane whose first gang the round has admitted is kept beside it.
 */
export class LaneWalk {
  readonly #order: readonly Lane[];
  #at = 0;
  readonly #compare: Compare;
  /** Null: there was none. */
  #moved: Heap<Lane> | null = null;
  #first: Lane | null = null;

  private constructor(order: readonly Lane[], compare: Compare) {
    this.#order = order;
    this.#compare = compare;
  }

  static ofAll(line: Line, nowMs: number): LaneWalk {
    return new LaneWalk(lanesInOrder(line, nowMs), comparesLanes(nowMs));
  }

  /** Those that are awake, or for which something may have come, and some others. */
  static ofWakeful(line: Line, nowMs: number): LaneWalk {
    const compare = comparesLanes(nowMs);
    const awake = line.awake.filter((lane) => headOf(lane) !== undefined);
    return new LaneWalk(awake.length > 1 ? awake.sort(compare) : awake, compare);
  }

  /** Returns the first lane that has a gang and passes a test. It stays. Those before it are left out from now on. */
  peek(test: (lane: Lane) => boolean): Lane | null {
    for (;;) {
      this.#first ??= this.#next();
      if (this.#first === null) return null;
      if (headOf(this.#first) !== undefined && test(this.#first)) return this.#first;
      this.#first = null;
    }
  }

  /** Leaves the first lane out from now on. */
  drop(): void {
    this.#first = null;
  }

  /** Puts the first lane where it belongs by its next gang. */
  settle(): void {
    if (this.#first !== null && headOf(this.#first) !== undefined) {
      this.#moved ??= new Heap<Lane>([], (a, b) => this.#compare(a, b) < 0);
      this.#moved.push(this.#first);
    }
    this.#first = null;
  }

  #next(): Lane | null {
    const next = this.#order[this.#at];
    const moved = this.#moved?.peek();
    if (next === undefined || (moved !== undefined && this.#compare(moved, next) < 0)) {
      return this.#moved?.pop() ?? null;
    }
    this.#at += 1;
    return next;
  }
}

/** All lanes of a queue in the order of their first gangs, before a round has admitted one. */
export function lanesInOrder(line: Line, nowMs: number): readonly Lane[] {
  line.order ??= [...line.lanes.values()].sort(comparesLanes(nowMs));
  return line.order;
}

/** True if the first gang of a lane comes after a gang of its queue. */
export function isBehind(lane: Lane, first: Entry, nowMs: number): boolean {
  const entry = headOf(lane);
  return entry !== undefined && compareAged(entry, first, nowMs) > 0;
}

/** By their first gangs. Both lanes have one. */
function comparesLanes(nowMs: number): Compare {
  return (a, b) => compareAged(headOf(a) as Entry, headOf(b) as Entry, nowMs);
}
