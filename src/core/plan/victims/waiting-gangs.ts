/** The other waiting gangs of a preemptor's queue, which fit once victims have been preempted for it. */
import { available, type PoolAmounts } from "../usage/branch-use.ts";
import type { Branch } from "../usage/branches.ts";
import type { Account } from "../usage/quota-levels.ts";
import type { QuotaState } from "../usage/quota-state.ts";

/** Alike gangs that wait in the preemptor's queue beside it. */
export type WaitingGangs = {
  /** Their amounts by pool, for each choice of flavors: of all their members, and of the fewest. */
  readonly choices: readonly { readonly all: PoolAmounts; readonly fewest: PoolAmounts }[];
  readonly count: number;
  readonly priority: number;
  /** Of the oldest of them. */
  readonly createTimeMs: number;
  /** True: one of them was preempted, and its tree has not changed since. */
  readonly wasPreempted: boolean;
};

/**
 * Counts as used what else of the preemptor's queue fits into pools that its victims free, while the state counts
 * neither these nor the victims, but the preemptor. `undo` takes it off again.
 */
export function chargeOthers(
  quota: QuotaState,
  { account }: { readonly account: Account },
  of: { readonly leaf: Branch; readonly others: Iterable<WaitingGangs>; readonly freed: Iterable<string> },
): void {
  const left = new Map<string, number>();
  const leftIn = (pool: string) => {
    const known = left.get(pool) ?? available(quota, of.leaf, pool);
    left.set(pool, known);
    return known;
  };
  const freed = [...of.freed];
  for (const { choices, count } of of.others) {
    if (!freed.some((pool) => leftIn(pool) > 0)) return;
    for (let at = 0; at < count; at++) {
      const part = partThatFits(choices, { freed, leftIn });
      if (part === null) break;
      for (const [pool, need] of part) {
        quota.charge(account, pool, need);
        left.set(pool, available(quota, of.leaf, pool));
      }
    }
  }
}

type Freed = { readonly freed: readonly string[]; readonly leftIn: (pool: string) => number };

/** The amounts that a gang gets by its first choice of flavors with a freed pool. Null: no choice fits. */
function partThatFits(choices: WaitingGangs["choices"], { freed, leftIn }: Freed): PoolAmounts | null {
  for (const { all, fewest } of choices) {
    if (!freed.some((pool) => all.has(pool)) || !fits(fewest, leftIn)) continue;
    if (fits(all, leftIn)) return all;
    const [[pool, most] = ["", 0], ...others] = [...all];
    return others.length > 0 ? fewest : new Map([[pool, Math.min(most, leftIn(pool))]]);
  }
  return null;
}

function fits(amounts: PoolAmounts, leftIn: Freed["leftIn"]): boolean {
  for (const [pool, need] of amounts) if (need > leftIn(pool)) return false;
  return true;
}
