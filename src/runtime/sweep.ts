/** So many visits go once over everything. */
const VISITS = 1024;

/** Goes over the entries of a map again and again, a few of them with each visit, so that no visit takes long. */
export class Sweep<K, V> {
  readonly #of: ReadonlyMap<K, V>;
  #left: Iterator<[K, V]>;

  constructor(of: ReadonlyMap<K, V>) {
    this.#of = of;
    this.#left = of.entries();
  }

  /** The entries that come next, which may be deleted. */
  next(): readonly (readonly [K, V])[] {
    const next: [K, V][] = [];
    for (let left = Math.ceil(this.#of.size / VISITS); left > 0; left--) {
      const { value, done } = this.#left.next();
      if (done === true) {
        this.#left = this.#of.entries();
        break;
      }
      next.push(value);
    }
    return next;
  }
}
