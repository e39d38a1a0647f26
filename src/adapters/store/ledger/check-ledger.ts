import type { LedgerCheck } from "../../../core/quota/ledger.ts";
import { type Db, type Executor, readSnapshot } from "../db/db.ts";
import { LEDGER_COLUMNS, type LedgerColumns, ledgerRow } from "./ledger-row.ts";
import { takeDomainsOf } from "./quota-domains.ts";
import { REDUCIBLE_TOO, type Reducible, reduceAllocations } from "./reduce-allocations.ts";
import { LIVE_SUMS, type SumKey, scopeOfSum, takePools } from "./sums.ts";

type LedgerFindings = LedgerCheck & { readonly orphanRows: readonly Reducible[] };

/** Compares the ledger with itself and with the records of jobs, in one snapshot. Null: all pools. */
export async function checkLedger(db: Db, pool: string | null): Promise<LedgerCheck> {
  const { sums, orphans } = await readSnapshot(db, (tx) => find(tx, pool === null ? null : [pool]));
  return { sums, orphans };
}

/**
 * Releases rows without a holder, recomputes wrong sums, and returns all differences. Grants, releases and changes of
 * limits in these pools wait until it has finished.
 */
export function repairLedger(db: Db, pool: string | null, nowMs: number): Promise<LedgerCheck> {
  return db.tx(async (tx) => {
    const pools = pool === null ? await allPools(tx) : [pool];
    await takeDomainsOf(tx, pools);
    await takePools(tx, pools);
    const { sums, orphans, orphanRows } = await find(tx, pools);
    const ended = orphanRows.map((row) => ({ row, kept: 0, reason: "reconciled" as const }));
    await reduceAllocations(tx, ended, { nowMs, anew: pools });
    return { sums, orphans };
  });
}

async function allPools(tx: Executor): Promise<readonly string[]> {
  const rows = await tx.query<{ pool: string }>(
    "select name as pool from pools union select pool from allocation_sums",
  );
  return rows.map((row) => row.pool);
}

async function find(tx: Executor, pools: readonly string[] | null): Promise<LedgerFindings> {
  const sums = await tx.query<SumKey & { recorded: number; live: number }>(WRONG_SUMS, [pools]);
  const orphans = await tx.query<LedgerColumns & Reducible>(ORPHANS, [pools]);
  return {
    sums: sums.map(({ recorded, live, ...key }) => ({ scope: scopeOfSum(key), recorded, live })),
    orphans: orphans.map(ledgerRow),
    orphanRows: orphans,
  };
}

const WRONG_SUMS = `
with live as (${LIVE_SUMS}),
recorded as (
  select pool, scope, name, used from allocation_sums where $1::text[] is null or pool = any($1)
)
select pool, scope, name, coalesce(r.used, 0) as recorded, coalesce(l.used, 0) as live
  from recorded r full join live l using (pool, scope, name)
 where coalesce(r.used, 0) <> coalesce(l.used, 0)
 order by pool, scope, name`;

/** The holds of a nominee have no admission yet. They live as long as its nomination. */
const ORPHANS = `
select ${LEDGER_COLUMNS}, ${REDUCIBLE_TOO}
  from allocations a
 where a.released_ms is null and a.job_uid is not null and ($1::text[] is null or a.pool = any($1))
   and not exists (
     select from admissions m where m.job_uid = a.job_uid and m.number = a.admission and m.tokens_released_ms is null
   )
   and not (a.hold and exists (select from token_heirs h where h.job_uid = a.job_uid and h.pool = a.pool))
 order by a.id`;
