import type { Scope } from "../../../core/quota/counters.ts";
import { GrantBook } from "../../../core/quota/grant-book.ts";
import { type Db, readSnapshot } from "../db/db.ts";
import { type LimitBounds, readLimits } from "./quota-limits.ts";
import { type SumKey, scopeOfSum } from "./sums.ts";

/**
 * Reads the use of every scope whose use is above 0, in no order. The result equals that of counters that hold the
 * ledger's rows.
 */
export function readUsed(
  db: Db,
  domain: string,
  bounds: LimitBounds,
): Promise<readonly { readonly scope: Scope; readonly used: number }[]> {
  return readSnapshot(db, async (tx) => {
    const rows = await tx.query<SumKey & { used: number }>(READ_USED, [domain]);
    const limits = await readLimits(tx, domain, bounds);
    return new GrantBook(
      limits,
      rows.map(({ used, ...key }) => ({ scope: scopeOfSum(key), used })),
    ).used();
  });
}

const READ_USED = `
select s.pool, s.scope, s.name, s.used
  from allocation_sums s join pools p on p.name = s.pool
 where p.domain = $1 and s.used > 0`;
