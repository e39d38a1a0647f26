import type { LedgerRow, Limits, ScopeSum } from "../../../core/quota/counters.ts";
import { GrantBook } from "../../../core/quota/grant-book.ts";
import { type Db, readSnapshot } from "../db/db.ts";
import { type LimitBounds, readLimits } from "./quota-limits.ts";
import { type SumKey, scopeOfSum, sharesOf } from "./sums.ts";

/**
 * Reads the use of every scope whose use is above 0, in no order. The result equals that of counters that hold the
 * ledger's rows.
 */
export function readUsed(db: Db, domain: string, bounds: LimitBounds): Promise<readonly ScopeSum[]> {
  return readSnapshot(db, async (tx) =>
    usedWith(await readLimits(tx, domain, bounds), await tx.query<RecordedUse>(RECORDED_USE, [domain])),
  );
}

/** A recorded sum. */
export type RecordedUse = SumKey & { readonly used: number };

/** Reads the recorded sums of a domain's pools. */
export const RECORDED_USE = `
select s.pool, s.scope, s.name, s.used
  from allocation_sums s join pools p on p.name = s.pool
 where p.domain = $1 and s.used > 0`;

/** Returns the use of every scope if these allocations count besides the recorded ones. */
export function usedWith(
  limits: Limits,
  recorded: readonly RecordedUse[],
  beside: readonly LedgerRow[] = [],
): readonly ScopeSum[] {
  const used = new Map(recorded.map((sum) => [keyText(sum), sum]));
  for (const { amount, ...key } of sharesOf(beside)) {
    const before = used.get(keyText(key))?.used ?? 0;
    used.set(keyText(key), { ...key, used: before + amount });
  }
  const sums = [...used.values()].map(({ used: amount, ...key }) => ({ scope: scopeOfSum(key), used: amount }));
  return new GrantBook(limits, sums).used();
}

function keyText({ pool, scope, name }: SumKey): string {
  return JSON.stringify([pool, scope, name]);
}
