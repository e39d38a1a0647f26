import type { AllocationRef, Holder, LedgerRow } from "../../../core/quota/counters.ts";

/** The columns of a holder. */
export type HolderColumns = {
  readonly job_uid: string | null;
  readonly admission: number | null;
  readonly caller: string | null;
};

/** A row of `LEDGER_COLUMNS`. A fence may exceed 2^53, so it is text. */
export type LedgerColumns = Omit<LedgerRow, "holder" | "fence"> & HolderColumns & { readonly fence: string };

export const LEDGER_COLUMNS = `
a.pool, a.token, a.amount, a.project, a.namespace, a.queue, a.lease_ms as "leaseMs", a.fence::text as fence,
a.job_uid, a.admission, a.caller`;

export function ledgerRow(row: LedgerColumns): LedgerRow {
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
  throw new Error("a row of allocations has neither a job's admission nor a caller as its holder");
}

function holderColumns(holder: Holder): HolderColumns {
  return holder.kind === "admission"
    ? { job_uid: holder.jobUid, admission: holder.admission, caller: null }
    : { job_uid: null, admission: null, caller: holder.name };
}

/** Encodes a reference as a parameter. The fence is text, since JSON numbers are exact only up to 2^53. */
export function refText({ pool, token, fence }: AllocationRef) {
  return { pool, token, fence: fence.toString() };
}

/**
 * References as the parameters of `REFS`. The server expects a hundred rows of a JSON parameter, and joined to that
 * would read all tokens that ever were, if they are few.
 */
export function refColumns(refs: readonly AllocationRef[]) {
  const texts = refs.map(refText);
  return [texts.map(({ pool }) => pool), texts.map(({ token }) => token), texts.map(({ fence }) => fence)] as const;
}

/** Rows `l` of references, whose parameters are the first three. */
export const REFS = "unnest($1::text[], $2::text[], $3::bigint[]) as l (pool, token, fence)";

/** The columns that every new row gets from its `newRow`. */
export const NEW_ROW = `
pool, token, queue, project, namespace, amount, fence, job_uid, admission, caller, lease_ms`;

/** The types of those columns, in a parameter that is a list of `newRow`s. */
export const NEW_ROW_TYPES = `
pool text, token text, queue text, project text, namespace text, amount bigint, fence bigint, job_uid uuid,
admission int, caller text, lease_ms bigint`;

export function newRow(row: LedgerRow) {
  const { queue, project, namespace, amount, leaseMs } = row;
  return { ...refText(row), queue, project, namespace, amount, ...holderColumns(row.holder), lease_ms: leaseMs };
}
