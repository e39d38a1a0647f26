import type { PreemptionReason } from "../../job/preemption.ts";
import { available, borrowsWith } from "../usage/branch-use.ts";
import type { Branch } from "../usage/branches.ts";
import type { Account } from "../usage/quota-levels.ts";
import { goesWithMinimum, type Preemptor, type RunningGang, type Victim, type VictimSearch } from "./running-gang.ts";

/** The gangs that one attempt has taken so far. What they used is off the state until `end`. */
export class Taking {
  readonly #search: VictimSearch;
  readonly #preemptor: Preemptor;
  readonly #leaf: Branch;
  readonly #mark: number;
  #victims: Victim[] = [];

  constructor(search: VictimSearch, preemptor: Preemptor, leaf: Branch) {
    this.#search = search;
    this.#preemptor = preemptor;
    this.#leaf = leaf;
    this.#mark = search.quota.mark;
  }

  take(gang: RunningGang, reason: PreemptionReason): void {
    this.#discharge(gang.account, gang.uses);
    this.#victims.push({ gang, reason });
  }

  /** True if the preemptor fits now. Without borrowing, its queue must also stay within its own quota. */
  fits({ borrowing }: { readonly borrowing: boolean }, gone: readonly Victim[] = this.#victims): boolean {
    const { quota, fitsWithout } = this.#search;
    const { account, priority, requested } = this.#preemptor;
    for (const [name, need] of requested) {
      const pool = this.#leaf.pools.get(name);
      if (pool === undefined || need > available(quota, this.#leaf, name)) return false;
      if (!borrowing && borrowsWith(quota, pool, need)) return false;
      if (!quota.admits(account, name, { need, priority })) return false;
    }
    return fitsWithout?.(gone) ?? true;
  }

  /** The same while the state counts the preemptor's requests as used. */
  fitsWhenAdded(gone: readonly Victim[] = this.#victims): boolean {
    const { quota } = this.#search;
    const { mark } = quota;
    this.#discharge(this.#preemptor.account, this.#preemptor.requested);
    const fits = this.fits({ borrowing: true }, gone);
    quota.undo(mark);
    return fits;
  }

  /**
   * Puts victims back that need not go, from the last but one to the first: the last one is needed, because the
   * preemptor did not fit before it was taken. The last of the list takes the place of one that is put back, as in
   * Kueue.
   */
  fillBack(how: { readonly borrowing: boolean }): readonly Victim[] {
    for (let at = this.#victims.length - 2; at >= 0; at -= 1) {
      const all = this.#victims;
      const { gang } = all[at] as Victim;
      if (goesWithMinimum(gang, all)) continue;
      const { mark } = this.#search.quota;
      for (const [pool, amount] of gang.uses) this.#search.quota.charge(gang.account, pool, amount);
      const without = [...all];
      without[at] = all.at(-1) as Victim;
      without.pop();
      this.#victims = without;
      if (this.fits(how)) continue;
      this.#victims = all;
      this.#search.quota.undo(mark);
    }
    return this.#victims;
  }

  end(): void {
    this.#search.quota.undo(this.#mark);
  }

  #discharge(account: Account, amounts: ReadonlyMap<string, number>): void {
    for (const [pool, amount] of amounts) this.#search.quota.discharge(account, pool, amount);
  }
}
