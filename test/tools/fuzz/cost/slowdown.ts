/**
 * How much more everything costs now than on the same machine when it was least busy: programs beside the service take
 * away its caches, and so add to its CPU time.
 */
import { percentile } from "./judge.ts";

const TIMES = 3;
const FIRST_TIMES = 12;

export class Slowdown {
  readonly #yardstickMs: () => Promise<number>;
  #leastMs = Number.POSITIVE_INFINITY;

  /** `yardstickMs`: runs the yardstick, and returns its CPU time. */
  constructor(yardstickMs: () => Promise<number>) {
    this.#yardstickMs = yardstickMs;
  }

  /** At least 1. The first call takes longer: it compiles the yardstick. */
  async now(): Promise<number> {
    const times = Number.isFinite(this.#leastMs) ? TIMES : FIRST_TIMES;
    const costs: number[] = [];
    for (let time = 0; time < times; time += 1) costs.push(await this.#yardstickMs());
    this.#leastMs = Math.min(this.#leastMs, ...costs);
    return Math.max(1, percentile(costs, 0.5) / Math.max(1, this.#leastMs));
  }
}
