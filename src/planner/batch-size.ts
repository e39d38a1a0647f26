import { GRANTS_MAX } from "../core/quota/allocations.ts";

/**
 * While callers take tokens as well. Their grants wait for a batch that is being recorded: with so many gangs, about as
 * long as for their own records.
 */
const BESIDE_CALLERS = 64;

/** How many gangs a batch may have, which follows from fences: each grant of an epoch takes the next. */
export class BatchSize {
  #newest: bigint | null = null;
  #max = GRANTS_MAX;

  get max(): number {
    return this.#max;
  }

  /** True if others were granted tokens between the last batches. */
  get isBesideCallers(): boolean {
    return this.#max === BESIDE_CALLERS;
  }

  /** Takes the fences of a batch. A gap since the batch before is of others, who were granted tokens meanwhile. */
  note(fences: readonly bigint[]): void {
    const before = this.#newest;
    const fresh = [...new Set(fences)].filter((fence) => before === null || fence > before);
    const newest = fresh.sort((a, b) => (a < b ? -1 : 1)).at(-1);
    if (newest === undefined) return;
    if (before !== null) this.#max = newest - before > BigInt(fresh.length) ? BESIDE_CALLERS : GRANTS_MAX;
    this.#newest = newest;
  }
}
