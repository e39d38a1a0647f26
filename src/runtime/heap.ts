/** A binary heap: takes the least of its items first. The order of equal items is not defined. */
export class Heap<T> {
  readonly #items: T[];
  readonly #before: (a: T, b: T) => boolean;

  constructor(items: readonly T[], before: (a: T, b: T) => boolean) {
    this.#items = [...items];
    this.#before = before;
    this.#order();
  }

  get size(): number {
    return this.#items.length;
  }

  /** Returns the least item, which stays. */
  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    const items = this.#items;
    let at = items.push(item) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const other = items[above] as T;
      if (!this.#before(item, other)) break;
      items[at] = other;
      at = above;
    }
    items[at] = item;
  }

  /** Removes the least item. */
  pop(): T | undefined {
    const [least] = this.#items;
    const last = this.#items.pop();
    if (this.#items.length > 0 && last !== undefined) {
      this.#items[0] = last;
      this.#sink(0);
    }
    return least;
  }

  /** Puts the least item at its place after it has changed. */
  settle(): void {
    if (this.#items.length > 1) this.#sink(0);
  }

  #order(): void {
    for (let at = (this.#items.length >> 1) - 1; at >= 0; at--) this.#sink(at);
  }

  #sink(from: number): void {
    const items = this.#items;
    const item = items[from] as T;
    let at = from;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= items.length) break;
      if (below + 1 < items.length && this.#before(items[below + 1] as T, items[below] as T)) below += 1;
      if (!this.#before(items[below] as T, item)) break;
      items[at] = items[below] as T;
      at = below;
    }
    items[at] = item;
  }
}
