import type { GangLines, Lane } from "./gang-lines.ts";

/** The lanes that wait for one thing. */
export type WaitList = {
  readonly waiting: Set<Lane>;
  /** True: it may have come, and lanes that wait for it were not looked at since. */
  hopeful: boolean;
};

/** So small a part of the gangs is woken at once. Of more, most would find that others have taken what has come. */
const PART_WOKEN_AT_ONCE = 1 / 4;

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

  /** Wakes the lanes that wait if they are few. Others are woken as their queues have turns. */
  wakeFew(lines: GangLines): void {
    let waiting = 0;
    for (const list of this.#all) waiting += list.waiting.size;
    if (waiting <= lines.entries.size * PART_WOKEN_AT_ONCE) this.wakeAll(lines);
  }

  wakeAll(lines: GangLines): void {
    for (const { waiting } of this.#all) for (const lane of waiting) lines.wake(lane);
    this.clear();
  }

  clear(): void {
    for (const list of this.#all) list.hopeful = false;
    this.#all.clear();
  }
}
