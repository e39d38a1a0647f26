import type { Rest } from "../../core/quota/counters.ts";
import { type Db, type Executor, json } from "./db.ts";
import { refText } from "./ledger-row.ts";
import { takePools } from "./sums.ts";

/** What is left of lines of which a part was given back that the counters hold still, oldest first. */
export async function unconfirmedShrinks(executor: Executor, domain: string, limit: number): Promise<readonly Rest[]> {
  const rows = await executor.query<Omit<Rest, "fence"> & { fence: string }>(UNCONFIRMED, [domain, limit]);
  return rows.map((row) => ({ ...row, fence: BigInt(row.fence) }));
}

const UNCONFIRMED = `
select a.pool, a.token, a.fence::text, a.amount
  from allocations a join pools p on p.name = a.pool
 where p.domain = $1 and a.shrunk and a.released_ms is null
 order by a.fence, a.pool, a.token limit $2`;

/** Notes that the counters have heard what is left of these lines; one of which less is left by now they have not. */
export async function confirmShrinks(db: Db, rests: readonly Rest[]): Promise<void> {
  if (rests.length === 0) return;
  await db.tx(async (tx) => {
    // These lines are live: whoever changes one has its pool.
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
