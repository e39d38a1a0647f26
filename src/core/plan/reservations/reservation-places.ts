import type { PoolAmounts } from "../usage/branch-use.ts";

/** Stands for the pools of gangs that request no flavor. */
export const NO_POOL = "";

/** The places for reservations that pools have left. */
export class ReservationPlaces {
  /** Pools that give no place any more. */
  readonly closed = new Set<string>();
  readonly #taken = new Map<string, number>();
  readonly #perPool: number;

  /** `kept`: the reservations that have theirs. */
  constructor(perPool: number, kept: readonly { readonly requested: PoolAmounts }[]) {
    this.#perPool = perPool;
    for (const { requested } of kept) this.take(requested);
  }

  /** Records a reservation of a gang that takes these amounts. */
  take(requested: PoolAmounts): void {
    for (const pool of poolsOf(requested)) this.#taken.set(pool, (this.#taken.get(pool) ?? 0) + 1);
  }

  hasOne(pool: string): boolean {
    return (this.#taken.get(pool) ?? 0) < this.#perPool && !this.closed.has(pool);
  }

  /** True if a gang that takes these amounts finds a place in each of its pools. */
  hasAll(requested: PoolAmounts): boolean {
    return poolsOf(requested).every((pool) => this.hasOne(pool));
  }
}

/** The pools in which a gang's reservation takes a place. */
export function poolsOf(requested: PoolAmounts): readonly string[] {
  const pools = [...requested].filter(([, amount]) => amount > 0).map(([pool]) => pool);
  return pools.length === 0 ? [NO_POOL] : pools;
}
