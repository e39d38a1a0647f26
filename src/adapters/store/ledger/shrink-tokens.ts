import type { JobSpec } from "../../../core/job/spec.ts";
import type { Admission } from "../../../core/job/status.ts";
import { askMembers } from "../../../core/plan/ask.ts";
import { flavoredAmounts } from "../../../core/plan/flavors.ts";
import { memberGroups } from "../../../core/plan/gang.ts";
import type { LedgerRow } from "../../../core/quota/counters.ts";
import { type Executor, json } from "../db/db.ts";
import { LEDGER_COLUMNS, type LedgerColumns, ledgerRow } from "./ledger-row.ts";
import { endAllocations } from "./release-tokens.ts";
import { discharge, takePools } from "./sums.ts";

/** An allocation of an admission and the amount that it keeps. */
type Share = { readonly id: number; readonly allocation: LedgerRow; readonly kept: number };

/**
 * Reduces an admission's tokens to those of its remaining members. The newest grants go first: allocations that keep
 * nothing are released, and at most one allocation of each pool is reduced under the same fence. The counters learn of
 * both later, with retries. Meanwhile they count too much, never too little.
 */
export async function shrinkTokens(
  tx: Executor,
  of: { readonly jobUid: string; readonly spec: JobSpec; readonly admission: Admission; readonly nowMs: number },
): Promise<void> {
  const { jobUid, spec, admission, nowMs } = of;
  const pools = [...new Set(Object.values(admission.flavors))];
  await takePools(tx, pools);
  // Excludes tokens that plugins requested while the job runs. They have other names and do not belong to members.
  const prefix = `job/${jobUid}/admission/${admission.number}/`;
  const rows = await tx.query<LedgerColumns & { readonly id: number }>(HELD, [jobUid, admission.number, pools, prefix]);
  const shares = sharesOf(rows, keptAmounts(spec, admission));
  const ended = shares.filter(({ kept }) => kept === 0);
  await endAllocations(
    tx,
    ended.map(({ id, allocation }) => ({ id, allocation, reason: "released" })),
    nowMs,
  );
  const shrunk = shares.filter(({ allocation, kept }) => kept > 0 && kept < allocation.amount);
  if (shrunk.length === 0) return;
  await tx.query(SHRINK, [json(shrunk.map(({ id, kept }) => ({ id, kept })))]);
  await discharge(
    tx,
    shrunk.map(({ allocation, kept }) => ({ ...allocation, amount: allocation.amount - kept })),
  );
}

/** Returns the amount that each allocation keeps. The oldest come first. */
function sharesOf(
  rows: readonly (LedgerColumns & { readonly id: number })[],
  keep: Readonly<Record<string, number>>,
): readonly Share[] {
  const left = new Map(Object.entries(keep));
  return rows.map((row) => {
    const kept = Math.min(row.amount, left.get(row.pool) ?? 0);
    left.set(row.pool, (left.get(row.pool) ?? 0) - kept);
    return { id: row.id, allocation: ledgerRow(row), kept };
  });
}

/** Returns the amounts that the members of an admission need from each of its pools. */
function keptAmounts(spec: JobSpec, { members, flavors }: Admission): Readonly<Record<string, number>> {
  const amounts: Record<string, number> = {};
  const groups = memberGroups(askMembers(spec), members);
  for (const [resource, amount] of Object.entries(flavoredAmounts(groups, Object.keys(flavors)))) {
    const pool = flavors[resource] ?? "";
    amounts[pool] = (amounts[pool] ?? 0) + amount;
  }
  return amounts;
}

const HELD = `
select ${LEDGER_COLUMNS}, a.id
  from allocations a
 where a.job_uid = $1 and a.admission = $2 and a.released_ms is null
   and a.pool = any($3::text[]) and starts_with(a.token, $4)
 order by a.id`;

const SHRINK = `
update allocations a set amount = s.kept, shrunk = true
  from json_to_recordset($1::json) as s (id bigint, kept bigint)
 where a.id = s.id`;
