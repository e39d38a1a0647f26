/** Some slots of a room, in the order in which they were added. */
export class SlotSet {
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

  /** Makes room for more slots. */
  grow(slots: number): void {
    const has = new Uint8Array(slots);
    has.set(this.#has);
    this.#has = has;
  }
}
