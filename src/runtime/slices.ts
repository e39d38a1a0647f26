import { setImmediate } from "node:timers/promises";

/** Long enough that pauses cost nothing, and short enough that nobody notices. */
const SLICE_MS = 8;

/** Divides long work, so that the rest of the process gets turns. */
export class Slices {
  #endMs = performance.now() + SLICE_MS;

  /** True once a slice is over. Then await `pause`. */
  get isOver(): boolean {
    return performance.now() >= this.#endMs;
  }

  /** Lets others have their turns, and begins the next slice. */
  async pause(): Promise<void> {
    await setImmediate();
    this.#endMs = performance.now() + SLICE_MS;
  }
}
