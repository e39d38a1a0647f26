import type { Resources } from "../../pods/resources.ts";
import type { Columns, FitClass } from "./fit-classes.ts";

/** Amounts by column, then by slot of a node. A column that is missing has its base everywhere. */
export class Amounts {
  readonly columns: Float64Array[] = [];
  readonly #names: Columns;
  #slots = 0;

  constructor(names: Columns) {
    this.#names = names;
  }

  /** The amounts of a column, which may be changed. */
  column(column: number): Float64Array {
    while (this.columns.length <= column) this.columns.push(this.#newColumn(this.columns.length));
    return this.columns[column] as Float64Array;
  }

  #newColumn(column: number): Float64Array {
    const amounts = new Float64Array(this.#slots);
    const base = this.#names.baseOf(column);
    return base === 0 ? amounts : amounts.fill(base);
  }

  at(column: number, slot: number): number {
    return this.columns[column]?.[slot] ?? this.#names.baseOf(column);
  }

  /** Makes place for more slots. */
  grow(slots: number): void {
    this.#slots = slots;
    for (const [column, old] of this.columns.entries()) {
      const grown = this.#newColumn(column);
      grown.set(old);
      this.columns[column] = grown;
    }
  }

  /** Sets all amounts of a slot. */
  set(slot: number, resources: Resources): void {
    for (const [column, amounts] of this.columns.entries()) amounts[slot] = this.#names.baseOf(column);
    for (const [name, amount] of Object.entries(resources)) this.column(this.#names.of(name))[slot] = amount;
  }

  /** Takes over all amounts of others. */
  copy(others: Amounts): void {
    const count = Math.max(this.columns.length, others.columns.length);
    for (let column = 0; column < count; column++) this.column(column).set(others.column(column));
  }

  /** True if a slot has other amounts than in `before`. */
  differs(before: Amounts, slot: number): boolean {
    const count = Math.max(this.columns.length, before.columns.length);
    for (let column = 0; column < count; column++) {
      if (this.at(column, slot) !== before.at(column, slot)) return true;
    }
    return false;
  }

  /** How many pods of a class these amounts of a slot are enough for, at most `max`. */
  podsIn({ columns, amounts }: FitClass, slot: number, max: number): number {
    let least = max;
    for (let at = 0; at < columns.length; at++) {
      const amount = amounts[at] as number;
      const left = this.at(columns[at] as number, slot);
      if (left < amount) return 0;
      // Most columns are enough for as many as the first, the scarcest one.
      if (left < amount * least) least = Math.floor(left / amount);
    }
    return Math.max(0, least);
  }
}
