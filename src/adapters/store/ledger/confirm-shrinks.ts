import type { Rest } from "../../../core/quota/counters.ts";
import { type Db, type Executor, json } from "../db/db.ts";
import { IS_TELLABLE } from "./confirm-turn-overs.ts";
import { refText } from "./ledger-row.ts";
import { takePools } from "./sums.ts";

/** Reads the amounts of reduced allocations that the counters are to reduce now, oldest first. */
export async function unconfirmedShrinks(executor: Executor, domain: string, limit: number): Promise<readonly Rest[]> {
  const rows = await executor.query<Omit<Rest, "fence"> & { fence: string }>(UNCONFIRMED_SHRINKS, [domain, limit]);
  return rows.map((row) => ({ ...row, fence: BigInt(row.fence) }));
}

const UNCONFIRMED_SHRINKS = `
select a.pool, a.token, a.fence::text, a.amount
  from allocations a join pools p on p.name = a.pool
 where p.domain = $1 and a.shrunk and a.released_ms is null and ${IS_TELLABLE}
 order by a.fence, a.pool, a.token limit $2`;

/** Records that the counters have reduced these allocations. Skips an allocation that was reduced further meanwhile. */
export async function confirmShrinks(db: Db, rests: readonly Rest[]): Promise<void> {
  if (rests.length === 0) return;
  await db.tx(async (tx) => {
    // The allocations are live, so every change of one locks its pool.
    await takePools(
      tx,
      rests.map(({ pool }) => pool),
    );
    await tx.query(CONFIRM, [json(rests.map((rest) => ({ ...refText(rest), amount: rest.amount })))]);
  });
}

const CONFIRM = `
update allocations a set shrunk = false
  from json_to_recordset($1::json) as l (pool text, token text, fence bigint, amount bigint)
 where a.pool = l.pool and a.token = l.token and a.fence = l.fence and a.amount = l.amount and a.shrunk`;
