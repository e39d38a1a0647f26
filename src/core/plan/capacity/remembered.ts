import type { Amounts } from "./amounts.ts";
import { type KeySet, NO_NODE } from "./fit-classes.ts";

type Classes = ReadonlyMap<KeySet, Int32Array>;

/**
 * The capacity of a cluster when it was remembered: the free amounts and the classes of its nodes, and the slots
 * that placements have used since.
 */
export class Remembered {
  readonly free: Amounts;
  readonly #classes = new Map<KeySet, Int32Array>();
  readonly #touched = new SlotSet();

  constructor(free: Amounts) {
    this.free = free;
  }

  /** Remembers the capacity as it is. */
  become(free: Amounts, classes: Classes): void {
    this.free.copy(free);
    for (const [keys, now] of classes) {
      const before = this.#classes.get(keys);
      if (before?.length === now.length) before.set(now);
      else this.#classes.set(keys, now.slice());
    }
    this.#touched.keep(() => false);
  }

  /** Adds the classes of nodes by keys by which nothing has told them apart before. */
  addClasses(keys: KeySet, classes: Int32Array): void {
    this.#classes.set(keys, classes.slice());
  }

  classAt(keys: KeySet, slot: number): number {
    return this.#classes.get(keys)?.[slot] ?? NO_NODE;
  }

  /** The first slots whose nodes have other amounts left now, or are of another class. */
  changed(free: Amounts, classes: Classes, slots: number): readonly number[] {
    const changed = new Set<number>();
    for (let slot = 0; slot < slots; slot++) {
      if (free.differs(this.free, slot)) changed.add(slot);
    }
    for (const [keys, now] of classes) {
      const before = this.#classes.get(keys);
      for (let slot = 0; slot < slots; slot++) {
        if (now[slot] !== (before?.[slot] ?? NO_NODE)) changed.add(slot);
      }
    }
    return [...changed];
  }

  /** The slots on which pods were placed since. */
  get touched(): readonly number[] {
    return this.#touched.slots;
  }

  touch(slot: number): void {
    this.#touched.add(slot);
  }

  /** Leaves out of `touched` the slots that have what they had again. */
  dropUntouched(free: Amounts): void {
    this.#touched.keep((slot) => free.differs(this.free, slot));
  }

  grow(capacity: number): void {
    this.free.grow(capacity);
    this.#touched.grow(capacity);
  }
}

/** Some slots of a cluster, in the order in which they were added. */
class SlotSet {
  readonly #slots: number[] = [];
  #has = new Uint8Array(0);

  get slots(): readonly number[] {
    return this.#slots;
  }

  add(slot: number): void {
    if (this.#has[slot] === 1) return;
    this.#has[slot] = 1;
    this.#slots.push(slot);
  }

  /** Keeps the slots that pass a test. */
  keep(test: (slot: number) => boolean): void {
    for (const slot of this.#slots.splice(0)) {
      this.#has[slot] = 0;
      if (test(slot)) this.add(slot);
    }
  }

  /** Makes place for more slots. */
  grow(slots: number): void {
    const has = new Uint8Array(slots);
    has.set(this.#has);
    this.#has = has;
  }
}
