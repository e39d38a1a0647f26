import type { AllocationRef, TurnOver } from "../../../core/quota/counters.ts";
import type { Db, Executor } from "../db/db.ts";
import { LEDGER_COLUMNS, type LedgerColumns, ledgerRow, REFS, refColumns } from "./ledger-row.ts";
import { takePools } from "./sums.ts";

/**
 * Reads the tokens that the ledger has turned over to heirs and the counters still count for their former holders,
 * oldest first, with the amounts of then. They are told also if the heir has given them back since, which is told after
 * them.
 */
export async function untoldTurnOvers(executor: Executor, domain: string, limit: number): Promise<readonly TurnOver[]> {
  const rows = await executor.query<CutColumns>(UNTOLD, [domain, limit]);
  return rows.map(({ cut_token: token, cut_kept: kept, cut_amount: amount, ...columns }) => {
    const { leaseMs: _never, ...to } = ledgerRow(columns);
    return { from: { pool: to.pool, token, fence: to.fence, kept }, to: { ...to, amount } };
  });
}

type CutColumns = LedgerColumns & {
  readonly cut_token: string;
  readonly cut_kept: number;
  readonly cut_amount: number;
};

const UNTOLD = `
select ${LEDGER_COLUMNS}, a.cut_token, a.cut_kept, a.cut_amount
  from allocations a join pools p on p.name = a.pool
 where p.domain = $1 and a.untold
 order by a.id limit $2`;

/**
 * Holds for a row `a` of allocations whose release or reduction the counters may be told now: they know of everything
 * that was taken from it for heirs, and, if it was itself taken from another allocation, of that.
 */
export const IS_TELLABLE = `
(not a.untold
 and not exists (
   select from allocations u where u.untold and (u.pool, u.fence, u.cut_token) = (a.pool, a.fence, a.token)
 ))`;

/** Records that the counters have turned these tokens over. */
export async function confirmTurnOvers(db: Db, tokens: readonly AllocationRef[]): Promise<void> {
  if (tokens.length === 0) return;
  await db.tx(async (tx) => {
    await takePools(
      tx,
      tokens.map(({ pool }) => pool),
    );
    await tx.query(CONFIRM, refColumns(tokens));
  });
}

const CONFIRM = `
with told as (
  select a.id
    from ${REFS}
    join allocations a on a.pool = l.pool and a.token = l.token and a.fence = l.fence
   where a.untold
   order by a.id for no key update of a
)
update allocations set untold = false where id in (select id from told)`;
