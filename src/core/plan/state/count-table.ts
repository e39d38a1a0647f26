import type { ClusterRoom } from "./cluster-room.ts";
import type { FitClass, Rules } from "./fit-classes.ts";

const SIZE_MIN = 8;

/**
 * How many pods of classes fit a room. The classes have the same rules, and request the same resources. Each change of
 * a node goes over all of them, so the numbers are flat arrays: an object for each class would be read from memory that
 * is seldom in a cache. `Item` is what its owner keeps of a class.
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

  /** So many pods those need at least that wait for more. Infinite: nobody waits. */
  awaitedAt(row: number): number {
    return this.#awaited[row] as number;
  }

  setAwaited(row: number, need: number): void {
    this.#awaited[row] = need;
  }

  /**
   * Adds to each count that is known what the changed nodes take more than when the room was remembered. Notes the
   * classes of which some node takes more and that now have as many as somebody awaits.
   */
  move(room: ClusterRoom, changed: readonly number[], met: Set<Item>): void {
    const slots = changed.filter((slot) => room.allowedBefore(this.#rules, slot) || room.allowedNow(this.#rules, slot));
    if (slots.length === 0) return;
    const before = this.#leftOn(slots, (column, slot) =>
      room.allowedBefore(this.#rules, slot) ? room.freeBefore(column, slot) : 0,
    );
    const now = this.#leftOn(slots, (column, slot) =>
      room.allowedNow(this.#rules, slot) ? room.freeAt(column, slot) : 0,
    );
    for (let row = 0; row < this.#items.length; row++) {
      const hasGained = this.countAt(row) >= 0 && this.#moveRow(row, before, now);
      if (hasGained && this.awaitedAt(row) <= this.countAt(row)) met.add(this.#items[row] as Item);
    }
  }

  /** What slots have left, by slot and within a slot by column. */
  #leftOn(slots: readonly number[], leftOf: (column: number, slot: number) => number): Float64Array {
    return Float64Array.from(slots.flatMap((slot) => this.#columns.map((column) => leftOf(column, slot))));
  }

  /** True if some slot takes more pods, also if others take fewer. */
  #moveRow(row: number, before: Float64Array, now: Float64Array): boolean {
    let count = this.#counts[row] as number;
    let hasGained = false;
    for (let from = 0; from < now.length; from += this.#columns.length) {
      const more = this.#podsIn(row, now, from) - this.#podsIn(row, before, from);
      count += more;
      hasGained ||= more > 0;
    }
    this.#counts[row] = count;
    return hasGained;
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
