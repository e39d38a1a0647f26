import type { LedgerRow, QueueLimit } from "../../core/quota/counters.ts";
import { type Db, type Executor, onlyRow } from "./db.ts";

export type RaisedEpoch = {
  readonly epoch: number;
  readonly rows: readonly LedgerRow[];
  readonly limits: readonly QueueLimit[];
};

/**
 * Raises the epoch and reads what counters are rebuilt from. Raising waits for grants that began under the old epoch, so that what is read
 * after it holds them; whatever was released before is confirmed by it, since the new counters never knew it.
 */
export function raiseQuotaEpoch(db: Db): Promise<RaisedEpoch> {
  return db.tx(async (tx) => {
    const raised = await tx.query<{ epoch: number }>(
      "update quota_domains set epoch = epoch + 1 where name = 'default' returning epoch",
    );
    await tx.query("update allocations set confirmed = true where released_ms is not null and not confirmed");
    const lines = await tx.query<LineRow>(LIVE_LINES);
    const limits = await queueLimits(tx);
    return { epoch: onlyRow(raised).epoch, rows: lines.map(ledgerRow), limits };
  });
}

type LineRow = Omit<LedgerRow, "holder" | "fence"> & {
  readonly fence: string;
  readonly job_uid: string;
  readonly admission: number;
};

const LIVE_LINES = `
select pool, token, queue, project, namespace, amount, fence::text, job_uid, admission
  from allocations where released_ms is null order by id`;

function ledgerRow({ fence, job_uid, admission, ...line }: LineRow): LedgerRow {
  return { ...line, fence: BigInt(fence), holder: { jobUid: job_uid, admission } };
}

/** The ceilings that the ledger itself enforces. */
function queueLimits(executor: Executor): Promise<readonly QueueLimit[]> {
  return executor.query<QueueLimit>(
    `select queue, flavor as pool, nominal as "limit" from queue_quotas order by queue, position`,
  );
}

/** Fences that were released and that the counters have not freed yet, oldest first. */
export async function unconfirmedReleases(executor: Executor, limit: number): Promise<readonly bigint[]> {
  const rows = await executor.query<{ fence: string }>(UNCONFIRMED, [limit]);
  return rows.map((row) => BigInt(row.fence));
}

const UNCONFIRMED = `
select fence::text from allocations
 where released_ms is not null and not confirmed
 group by allocations.fence order by allocations.fence limit $1`;

export async function confirmReleases(executor: Executor, fences: readonly bigint[]): Promise<void> {
  if (fences.length === 0) return;
  await executor.query(CONFIRM, [fences.map(String)]);
}

const CONFIRM = `
update allocations set confirmed = true
 where fence = any($1::bigint[]) and released_ms is not null and not confirmed`;
