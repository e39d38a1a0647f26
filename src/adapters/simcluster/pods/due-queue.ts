type DueKey = { readonly dueMs: number; readonly key: string };

/** A binary heap of keys by time. Keys of the same time are sorted by text, so that every run has the same order. */
export class DueQueue {
  readonly #heap: DueKey[] = [];

  push(dueMs: number, key: string): void {
    const heap = this.#heap;
    heap.push({ dueMs, key });
    let at = heap.length - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#before(at, parent)) break;
      this.#swap(at, parent);
      at = parent;
    }
  }

  /** When the first key is due. Null: the queue is empty. */
  nextMs(): number | null {
    return this.#heap[0]?.dueMs ?? null;
  }

  /** Removes and returns the first key that is due at `nowMs`. Null: none is due. */
  pop(nowMs: number): string | null {
    const heap = this.#heap;
    const first = heap[0];
    if (first === undefined || first.dueMs > nowMs) return null;
    const last = heap.pop();
    if (last !== undefined && heap.length > 0) {
      heap[0] = last;
      this.#sink();
    }
    return first.key;
  }

  #sink(): void {
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const right = left + 1;
      let least = at;
      if (left < this.#heap.length && this.#before(left, least)) least = left;
      if (right < this.#heap.length && this.#before(right, least)) least = right;
      if (least === at) return;
      this.#swap(at, least);
      at = least;
    }
  }

  #before(a: number, b: number): boolean {
    const one = this.#heap[a];
    const other = this.#heap[b];
    if (one === undefined || other === undefined) return false;
    return one.dueMs < other.dueMs || (one.dueMs === other.dueMs && one.key < other.key);
  }

  #swap(a: number, b: number): void {
    const one = this.#heap[a];
    const other = this.#heap[b];
    if (one === undefined || other === undefined) return;
    this.#heap[a] = other;
    this.#heap[b] = one;
  }
}
