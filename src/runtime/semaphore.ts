import { Turns } from "./turns.ts";

/** How many tasks may wait, and the error of those beyond. */
export type WaitingBound = { readonly max: number; readonly error: () => Error };

type Waiting = { readonly begin: () => void; readonly refuse: (error: Error) => void };

const NO_BOUND: WaitingBound = { max: Number.POSITIVE_INFINITY, error: () => new Error("too many tasks wait") };

/**
 * Runs at most `limit` tasks at a time. Others wait, and take turns by the keys that `keyOf` gives them when they come.
 * Omitted: they wait in the order in which they came. Beyond `bound`, the newest task of the key with the most waiting
 * tasks is refused. Omitted: any number may wait.
 */
export class Semaphore {
  readonly #waiting = new Turns<Waiting>();
  readonly #keyOf: () => string;
  readonly #bound: WaitingBound;
  #free: number;

  constructor(limit: number, keyOf: () => string = () => "", bound: WaitingBound = NO_BOUND) {
    this.#free = limit;
    this.#keyOf = keyOf;
    this.#bound = bound;
  }

  /** Runs a task once there is room for it, and returns its result or throws its error. `key` omitted: of `keyOf`. */
  async run<T>(task: () => Promise<T>, key: string = this.#keyOf()): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn(key);
    try {
      return await task();
    } finally {
      const next = this.#waiting.next();
      if (next === null) this.#free += 1;
      else next.begin();
    }
  }

  #turn(key: string): Promise<void> {
    return new Promise((begin, refuse) => {
      const isFull = this.#waiting.size >= this.#bound.max;
      const other = isFull ? this.#waiting.giveWay(key) : null;
      if (isFull && other === null) return refuse(this.#bound.error());
      other?.refuse(this.#bound.error());
      this.#waiting.add(key, { begin, refuse });
    });
  }
}
