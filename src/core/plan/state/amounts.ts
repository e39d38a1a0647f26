import type { Resources } from "../../pods/resources.ts";
import type { Columns, FitClass } from "./fit-classes.ts";

/** Amounts by column, then by slot of a node. A column that is missing is 0 everywhere. */
export class Amounts {
  readonly columns: Float64Array[] = [];
  #slots = 0;

  /** The amounts of a column, which may be changed. */
  column(column: number): Float64Array {
    while (this.columns.length <= column) this.columns.push(new Float64Array(this.#slots));
    return this.columns[column] as Float64Array;
  }

  at(column: number, slot: number): number {
    return this.columns[column]?.[slot] ?? 0;
  }

  /** Makes room for more slots. */
  grow(slots: number): void {
    this.#slots = slots;
    for (const [column, old] of this.columns.entries()) {
      const grown = new Float64Array(slots);
      grown.set(old);
      this.columns[column] = grown;
    }
  }

  /** Sets all amounts of a slot. */
  set(slot: number, resources: Resources, columns: Columns): void {
    for (const column of this.columns) column[slot] = 0;
    for (const [name, amount] of Object.entries(resources)) this.column(columns.of(name))[slot] = amount;
  }

  /** Takes over all amounts of others. */
  copy(others: Amounts): void {
    for (const [column, amounts] of others.columns.entries()) this.column(column).set(amounts);
  }

  /** True if a slot has other amounts than in `before`. */
  differs(before: Amounts, slot: number): boolean {
    for (let column = 0; column < this.columns.length; column++) {
      if (this.at(column, slot) !== before.at(column, slot)) return true;
    }
    return false;
  }

  /** How many pods of a class these amounts of a slot are enough for, at most `max`. */
  podsIn({ columns, amounts }: FitClass, slot: number, max: number): number {
    let least = max;
    for (let at = 0; at < columns.length; at++) {
      const amount = amounts[at] as number;
      const left = this.columns[columns[at] as number]?.[slot] ?? 0;
      if (left < amount) return 0;
      // Most columns are enough for as many as the first, the scarcest one.
      if (left < amount * least) least = Math.floor(left / amount);
    }
    return Math.max(0, least);
  }
}
