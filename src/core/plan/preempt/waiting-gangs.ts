/** The other waiting gangs of a taker's queue, which fit once victims have given way for it. */
import { available, type PoolAmounts } from "../state/branch-use.ts";
import type { Branch } from "../state/branches.ts";
import type { Account } from "../state/quota-levels.ts";
import type { QuotaState } from "../state/quota-state.ts";

/** Alike gangs that wait in the taker's queue beside it. */
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
 * Counts as used what else of the taker's queue fits into pools that its victims free, while the state counts neither
 * these nor the victims, but the taker. `undo` takes it off again.
 */
export function chargeOthers(
  quota: QuotaState,
  { account }: { readonly account: Account },
  of: { readonly leaf: Branch; readonly others: Iterable<WaitingGangs>; readonly freed: Iterable<string> },
): void {
  const room = new Map<string, number>();
  const roomIn = (pool: string) => {
    const known = room.get(pool) ?? available(quota, of.leaf, pool);
    room.set(pool, known);
    return known;
  };
  const freed = [...of.freed];
  for (const { choices, count } of of.others) {
    if (!freed.some((pool) => roomIn(pool) > 0)) return;
    for (let at = 0; at < count; at++) {
      const part = partThatFits(choices, { freed, roomIn });
      if (part === null) break;
      for (const [pool, need] of part) {
        quota.charge(account, pool, need);
        room.set(pool, available(quota, of.leaf, pool));
      }
    }
  }
}

type Room = { readonly freed: readonly string[]; readonly roomIn: (pool: string) => number };

/** The amounts that a gang gets by its first choice of flavors with a freed pool. Null: no choice fits. */
function partThatFits(choices: WaitingGangs["choices"], { freed, roomIn }: Room): PoolAmounts | null {
  for (const { all, fewest } of choices) {
    if (!freed.some((pool) => all.has(pool)) || !fits(fewest, roomIn)) continue;
    if (fits(all, roomIn)) return all;
    const [[pool, most] = ["", 0], ...others] = [...all];
    return others.length > 0 ? fewest : new Map([[pool, Math.min(most, roomIn(pool))]]);
  }
  return null;
}

function fits(amounts: PoolAmounts, roomIn: Room["roomIn"]): boolean {
  for (const [pool, need] of amounts) if (need > roomIn(pool)) return false;
  return true;
}
