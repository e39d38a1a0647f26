import type { Lane } from "./gang-lines.ts";

/** The lanes that wait for one thing. */
export type WaitList = {
  readonly waiting: Set<Lane>;
  /** True: it may have come, and lanes that wait for it were not looked at since. */
  hopeful: boolean;
};

/** Lists of lanes for which something may have come, until a round has looked at these lanes. */
export class HopefulLists<List extends WaitList> {
  readonly #all = new Set<List>();

  get size(): number {
    return this.#all.size;
  }

  add(list: List): void {
    list.hopeful = true;
    this.#all.add(list);
  }

  drop(list: List): void {
    list.hopeful = false;
    this.#all.delete(list);
  }

  [Symbol.iterator](): Iterator<List> {
    return this.#all.values();
  }

  /** The lanes that wait; one that waits for several things comes several times. */
  *lanes(): Generator<Lane> {
    for (const { waiting } of this.#all) yield* waiting;
  }

  clear(): void {
    for (const list of this.#all) list.hopeful = false;
    this.#all.clear();
  }
}
