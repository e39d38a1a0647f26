import type { Counters } from "../../core/quota/counters.ts";

/** Passes offers of the line on to those who wait in this process; offers to others are for other processes. */
export class Offers {
  readonly #counters: Pick<Counters, "onOffer">;
  readonly #listeners = new Map<string, () => void>();
  #stop: (() => void) | null = null;

  constructor(counters: Pick<Counters, "onOffer">) {
    this.#counters = counters;
  }

  /** Calls back on each offer to that waiter; returns how to stop. */
  listen(waiter: string, onOffer: () => void): () => void {
    this.#stop ??= this.#counters.onOffer((offered) => this.#listeners.get(offered)?.());
    this.#listeners.set(waiter, onOffer);
    return () => void this.#listeners.delete(waiter);
  }

  stop(): void {
    this.#stop?.();
    this.#stop = null;
    this.#listeners.clear();
  }
}
