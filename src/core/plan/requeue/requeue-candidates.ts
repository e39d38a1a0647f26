import type { GangClass, WaitList } from "../queues/records.ts";

/** Lists of gang classes for which something may have come, until a round has looked at these gang classes. */
export class RequeueCandidates<List extends WaitList> {
  readonly #all = new Set<List>();

  get size(): number {
    return this.#all.size;
  }

  add(list: List): void {
    list.isCandidate = true;
    this.#all.add(list);
  }

  drop(list: List): void {
    list.isCandidate = false;
    this.#all.delete(list);
  }

  [Symbol.iterator](): Iterator<List> {
    return this.#all.values();
  }

  /** The gang classes that wait; one that waits for several things comes several times. */
  *classes(): Generator<GangClass> {
    for (const { waiting } of this.#all) yield* waiting;
  }

  clear(): void {
    for (const list of this.#all) list.isCandidate = false;
    this.#all.clear();
  }
}
