import type { FitClass, Rules } from "./fit-classes.ts";
import type { FreeCapacity } from "./free-capacity.ts";

const SIZE_MIN = 8;

/** What some slots had left and have now: by slot, and within a slot by column. */
type Left = { readonly before: Float64Array; readonly now: Float64Array };

const NOTHING: Left = { before: new Float64Array(), now: new Float64Array() };

/**
 * How many pods of classes fit a cluster. The classes have the same rules, and request the same resources. Each change
 * of a node goes over all of them, so the numbers are flat arrays: an object for each class would be read from memory
 * that is seldom in a cache. `Item` is what its owner keeps of a class.
 */
export class CountTable<Item extends { row: number }> {
  readonly #rules: Rules;
  readonly #columns: readonly number[];
  readonly #items: Item[] = [];
  /** By row, and within a row by column: what one pod requests. */
  #amounts: Float64Array;
  /** By row. */
  #counts = new Float64Array(SIZE_MIN);
  #awaited = new Float64Array(SIZE_MIN);
  /** The free amounts of the touched slots, in one state of the nodes. */
  #touched: { readonly state: number; readonly left: Left } = { state: -1, left: NOTHING };

  constructor({ rules, columns }: FitClass) {
    this.#rules = rules;
    this.#columns = columns;
    this.#amounts = new Float64Array(SIZE_MIN * columns.length);
  }

  /** Adds a class in a row of its own. Nobody awaits pods of it. */
  add(item: Item, { amounts }: FitClass, count: number): void {
    if (this.#items.length === this.#counts.length) this.#grow(2 * this.#counts.length);
    item.row = this.#items.push(item) - 1;
    this.#amounts.set(amounts, item.row * this.#columns.length);
    this.#counts[item.row] = count;
    this.#awaited[item.row] = Number.POSITIVE_INFINITY;
  }

  /** Removes a class. The last one gets its row. */
  remove({ row }: Item): void {
    const last = this.#items.pop() as Item;
    const from = this.#items.length;
    if (row === from) return;
    const width = this.#columns.length;
    this.#items[row] = last;
    last.row = row;
    this.#amounts.copyWithin(row * width, from * width, (from + 1) * width);
    this.#counts[row] = this.#counts[from] as number;
    this.#awaited[row] = this.#awaited[from] as number;
  }

  /** Below 0: not known. */
  countAt(row: number): number {
    return this.#counts[row] as number;
  }

  setCount(row: number, count: number): void {
    this.#counts[row] = count;
  }

  /** The smallest number of pods that any waiter needs. Infinite if none waits. */
  awaitedAt(row: number): number {
    return this.#awaited[row] as number;
  }

  setAwaited(row: number, need: number): void {
    this.#awaited[row] = need;
  }

  /** How many pods of a class whose count is known fit beside what was placed since the capacity was remembered. */
  countNow(row: number, free: FreeCapacity): number {
    if (this.#touched.state !== free.state) {
      this.#touched = { state: free.state, left: this.#leftOn(free.touched, free) };
    }
    const { left } = this.#touched;
    let count = this.countAt(row);
    for (let from = 0; from < left.now.length; from += this.#columns.length) count += this.#moreOn(row, left, from);
    return count;
  }

  /**
   * Adds to each count that is known what the changed nodes take more than when the capacity was remembered. Records
   * the classes of which some node takes more and that now have as many as somebody awaits.
   */
  move(free: FreeCapacity, changed: readonly number[], met: Set<Item>): void {
    const left = this.#leftOn(changed, free);
    if (left.now.length === 0) return;
    for (let row = 0; row < this.#items.length; row++) {
      const hasGained = this.countAt(row) >= 0 && this.#moveRow(row, left);
      if (hasGained && this.awaitedAt(row) <= this.countAt(row)) met.add(this.#items[row] as Item);
    }
  }

  /** What slots have left, and had left. Only of those that may take pods, or could before. */
  #leftOn(slots: readonly number[], free: FreeCapacity): Left {
    const [before, now]: [number[], number[]] = [[], []];
    for (const slot of slots) {
      const [couldTake, mayTake] = [free.allowedBefore(this.#rules, slot), free.allowedNow(this.#rules, slot)];
      if (!couldTake && !mayTake) continue;
      for (const column of this.#columns) {
        before.push(couldTake ? free.freeBefore(column, slot) : 0);
        now.push(mayTake ? free.freeAt(column, slot) : 0);
      }
    }
    return { before: Float64Array.from(before), now: Float64Array.from(now) };
  }

  /** True if some slot takes more pods, also if others take fewer. */
  #moveRow(row: number, left: Left): boolean {
    let count = this.#counts[row] as number;
    let hasGained = false;
    for (let from = 0; from < left.now.length; from += this.#columns.length) {
      const more = this.#moreOn(row, left, from);
      count += more;
      hasGained ||= more > 0;
    }
    this.#counts[row] = count;
    return hasGained;
  }

  /** How many more pods a slot takes, of which the amounts are from a place on. */
  #moreOn(row: number, { before, now }: Left, from: number): number {
    return this.#podsIn(row, now, from) - this.#podsIn(row, before, from);
  }

  /** How many pods the amounts from a place on are enough for. */
  #podsIn(row: number, left: Float64Array, from: number): number {
    const width = this.#columns.length;
    let least = Number.POSITIVE_INFINITY;
    for (let at = 0; at < width; at++) {
      const amount = this.#amounts[row * width + at] as number;
      const has = left[from + at] as number;
      if (has < amount) return 0;
      // Most columns are enough for as many as the first, the scarcest one.
      if (has < amount * least) least = Math.floor(has / amount);
    }
    return least;
  }

  #grow(size: number): void {
    const grown = (old: Float64Array, length: number) => {
      const array = new Float64Array(length);
      array.set(old);
      return array;
    };
    this.#amounts = grown(this.#amounts, size * this.#columns.length);
    this.#counts = grown(this.#counts, size);
    this.#awaited = grown(this.#awaited, size);
  }
}
