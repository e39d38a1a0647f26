import type { LedgerRow } from "../../../core/quota/counters.ts";
import { type Executor, json } from "../db/db.ts";
import { LEDGER_COLUMNS, type LedgerColumns, ledgerRow } from "./ledger-row.ts";

/** Reads the live rows of these tokens. Omits tokens without a holder. */
export async function findLive(
  executor: Executor,
  tokens: readonly { readonly pool: string; readonly token: string }[],
): Promise<readonly LedgerRow[]> {
  if (tokens.length === 0) return [];
  const rows = await executor.query<LedgerColumns>(FIND_LIVE, [
    json(tokens.map(({ pool, token }) => ({ pool, token }))),
  ]);
  return rows.map(ledgerRow);
}

const FIND_LIVE = `
select ${LEDGER_COLUMNS}
  from (select distinct pool, token from json_to_recordset($1::json) as t (pool text, token text)) wanted
  join allocations a on a.pool = wanted.pool and a.token = wanted.token and a.released_ms is null`;
