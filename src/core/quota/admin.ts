/** Serves admins: listing allocations, forced releases, reconciliation and the audit log. */
import type { TokenName } from "./calls.ts";
import type { LedgerRow } from "./counters.ts";

export type PageRequest = {
  readonly pageSize: number;
  /** The cursor that the previous page returned. Null: the first page. */
  readonly after: string | null;
};

/** Null members filter nothing. */
export type AllocationFilter = {
  readonly pool: string | null;
  readonly project: string | null;
  readonly namespace: string | null;
  /** The holder as the API shows it: a caller's name, or `job/NAMESPACE/NAME/ADMISSION`. */
  readonly holder: string | null;
  readonly olderThanMs: number | null;
};

export type AllocationQuery = PageRequest & { readonly filter: AllocationFilter };

export type ShownAllocation = TokenName & {
  readonly amount: number;
  readonly project: string;
  readonly namespace: string;
  readonly queue: string | null;
  /** A caller's name, or `job/NAMESPACE/NAME/ADMISSION`. */
  readonly holder: string;
  readonly fence: bigint;
  /** Null for a pool of durability REDIS: its counters do not keep the time. */
  readonly grantTimeMs: number | null;
  /** Null: the token does not lapse, or the counters do not know. */
  readonly expireTimeMs: number | null;
};

export type AllocationPage = { readonly allocations: readonly ShownAllocation[]; readonly next: string | null };

/** A query of the ledger's allocations. The ledger, unlike the counters, keeps the times of grants. */
export type LedgerQuery = PageRequest & {
  readonly filter: Omit<AllocationFilter, "olderThanMs"> & { readonly grantedBeforeMs: number | null };
};

/** An allocation as the ledger lists it. */
export type LedgerAllocation = LedgerRow & {
  /** A caller's name, or `job/NAMESPACE/NAME/ADMISSION`. For a job that was deleted: `job/UID/ADMISSION`. */
  readonly holderText: string;
  readonly grantTimeMs: number;
};

export type LedgerPage = { readonly allocations: readonly LedgerAllocation[]; readonly next: string | null };

export type ForcedRelease = TokenName & { readonly reason: string; readonly actor: string };

export type ForceReleaseAnswer =
  | { readonly kind: "released" | "notHeld" | "unknownPool" }
  /** The live admission of a job holds the token. `job` is `NAMESPACE/NAME`. */
  | { readonly kind: "liveAdmission"; readonly job: string };

export type ReconcileRequest = {
  /** Null: all pools. */
  readonly pool: string | null;
  readonly dryRun: boolean;
  readonly actor: string;
};

export type QuotaDifference = {
  /**
   * `counterOnly`, `ledgerOnly`: one side alone has the token. `sumDiffers`: the sums of counters and ledger differ.
   * `ledgerSumDiffers`: the ledger's sum differs from its rows. `holderGone`: the row's admission holds nothing.
   */
  readonly kind: "counterOnly" | "ledgerOnly" | "sumDiffers" | "ledgerSumDiffers" | "holderGone";
  readonly pool: string;
  /** A token, or a scope as text. */
  readonly subject: string;
  readonly counters: number | null;
  readonly ledger: number | null;
  readonly repaired: boolean;
};

export type ReconcileAnswer =
  | { readonly differences: readonly QuotaDifference[]; readonly repaired: boolean; readonly epoch: number }
  | { readonly kind: "unknownPool" };

export type AuditAction = "RegisterResourceQuota" | "DeletePool" | "ForceRelease" | "ReconcileQuota";

/** An operation of an admin. */
export type AuditEntry = {
  readonly timeMs: number;
  readonly actor: string;
  readonly action: AuditAction;
  /** A pool, or `POOL/TOKEN`. Empty: all pools. */
  readonly subject: string;
  readonly reason: string;
  readonly details: Readonly<Record<string, unknown>>;
};

export type AuditQuery = PageRequest & {
  /** Null members filter nothing. */
  readonly filter: {
    readonly actor: string | null;
    readonly action: AuditAction | null;
    readonly subject: string | null;
  };
};

/** The newest entries come first. */
export type AuditPage = { readonly entries: readonly AuditEntry[]; readonly next: string | null };
