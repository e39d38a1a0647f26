import { getOrCreate } from "./get-or-create.ts";

/**
 * Items that wait in one line for each key. The lines take turns: each gives its first item, and then waits until every
 * other line has given one. So a key with many items delays those of another by one item a turn, and no more. With one
 * key this is a plain queue.
 */
export class Turns<Item extends object> {
  /** In the order of their next turns. None is empty. */
  readonly #lines = new Map<string, Item[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(key: string): boolean {
    return this.#lines.has(key);
  }

  /** How many items the line of this key has. */
  sizeOf(key: string): number {
    return this.#lines.get(key)?.length ?? 0;
  }

  add(key: string, item: Item): void {
    getOrCreate(this.#lines, key, () => []).push(item);
    this.#size += 1;
  }

  /** Takes the item whose turn it is. A line whose first item does not fit keeps its turn. Null: there is none. */
  next(fits: (item: Item) => boolean = () => true): Item | null {
    for (const [key, line] of this.#lines) {
      const [first] = line;
      if (first === undefined || !fits(first)) continue;
      line.shift();
      this.#lines.delete(key);
      if (line.length > 0) this.#lines.set(key, line);
      this.#size -= 1;
      return first;
    }
    return null;
  }

  /** Takes the newest item of the longest line, to make room for one of this key. Null: no line is so much longer. */
  giveWay(key: string): Item | null {
    const own = this.#lines.get(key)?.length ?? 0;
    let longest: Item[] = [];
    for (const line of this.#lines.values()) if (line.length > longest.length) longest = line;
    const newest = longest.length > own + 1 ? longest.pop() : undefined;
    if (newest === undefined) return null;
    this.#size -= 1;
    return newest;
  }
}
