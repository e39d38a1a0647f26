import { Turns } from "./turns.ts";

/**
 * Runs at most `limit` tasks at a time. Others wait, and take turns by the keys that `keyOf` gives them when they come.
 * Omitted: they wait in the order in which they came.
 */
export class Semaphore {
  readonly #waiting = new Turns<() => void>();
  readonly #keyOf: () => string;
  #free: number;

  constructor(limit: number, keyOf: () => string = () => "") {
    this.#free = limit;
    this.#keyOf = keyOf;
  }

  /** Runs a task once there is room for it, and returns its result or throws its error. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.add(this.#keyOf(), resolve));
    try {
      return await task();
    } finally {
      const next = this.#waiting.next();
      if (next === null) this.#free += 1;
      else next();
    }
  }
}
