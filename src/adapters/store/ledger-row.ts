import type { Holder, LedgerRow, LineRef } from "../../core/quota/counters.ts";

/** A holder as its columns say it. */
export type HolderColumns = {
  readonly job_uid: string | null;
  readonly admission: number | null;
  readonly caller: string | null;
};

/** A line as it is selected by `LINE_COLUMNS`; a fence may be beyond 2^53 and is text. */
export type LineRow = Omit<LedgerRow, "holder" | "fence"> & HolderColumns & { readonly fence: string };

export const LINE_COLUMNS = `
a.pool, a.token, a.amount, a.project, a.namespace, a.queue, a.lease_ms as "leaseMs", a.fence::text as fence, a.job_uid, a.admission, a.caller`;

export function ledgerRow(row: LineRow): LedgerRow {
  const { pool, token, amount, project, namespace, queue, leaseMs } = row;
  return {
    pool,
    token,
    amount,
    project,
    namespace,
    queue,
    leaseMs,
    holder: holderOf(row),
    fence: BigInt(row.fence),
  };
}

export function holderOf({ job_uid, admission, caller }: HolderColumns): Holder {
  if (job_uid !== null && admission !== null) return { kind: "admission", jobUid: job_uid, admission };
  if (caller !== null) return { kind: "caller", name: caller };
  throw new Error("an allocation has no holder");
}

export function holderColumns(holder: Holder): HolderColumns {
  return holder.kind === "admission"
    ? { job_uid: holder.jobUid, admission: holder.admission, caller: null }
    : { job_uid: null, admission: null, caller: holder.name };
}

/** A reference as a parameter: JSON has no numbers beyond 2^53. */
export function refText({ pool, token, fence }: LineRef) {
  return { pool, token, fence: fence.toString() };
}
