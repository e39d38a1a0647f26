/** The changes of a use that can be taken back, each with the level or branch that it concerns and its amount. */
export class UseTrail {
  readonly #places: number[] = [];
  readonly #amounts: number[] = [];
  /** The version after each change, in two halves. */
  readonly #low: number[] = [];
  readonly #high: number[] = [];

  push(at: number, amount: number): void {
    const last = this.#places.length - 1;
    this.#low.push(mix(this.#low[last] ?? 1, at, amount));
    this.#high.push(mix(this.#high[last] ?? 2, amount, at));
    this.#places.push(at);
    this.#amounts.push(amount);
  }

  get mark(): number {
    return this.#places.length;
  }

  /** A number for the changes that were made and not taken back. Equal numbers: the same changes in the same order. */
  get version(): number {
    const last = this.#places.length - 1;
    return last < 0 ? 0 : ((this.#low[last] as number) >>> 0) * 2 ** 20 + ((this.#high[last] as number) >>> 12);
  }

  /** Takes the changes after a mark off, the last one first. */
  popAfter(mark: number, undo: (at: number, amount: number) => void): void {
    while (this.#places.length > mark) {
      this.#low.pop();
      this.#high.pop();
      undo(this.#places.pop() as number, this.#amounts.pop() as number);
    }
  }

  forEachAfter(mark: number, read: (at: number, amount: number) => void): void {
    for (let change = mark; change < this.#places.length; change++) {
      read(this.#places[change] as number, this.#amounts[change] as number);
    }
  }
}

function mix(state: number, one: number, other: number): number {
  let mixed = Math.imul(state ^ one, 0x9e3779b1);
  mixed = Math.imul((mixed ^ (mixed >>> 15)) + other, 0x85ebca6b);
  return mixed ^ (mixed >>> 13);
}
