/** Serves admins: listing allocations, forced releases and reconciliation. */
import type { LedgerRow, TokenName } from "./counters.ts";

export type PageRequest = {
  readonly pageSize: number;
  /** The cursor that the previous page returned. Null: the first page. */
  readonly after: string | null;
};

/** Asks for a page of pools whose names begin with `prefix`. */
export type PoolQuery = PageRequest & {
  readonly prefix: string;
  /** Only pools that one of these prefixes names, as `isPoolShown` says. Omitted or null: all. */
  readonly within?: readonly string[] | null;
};

/** Null members filter nothing. */
export type AllocationFilter = {
  readonly pool: string | null;
  readonly project: string | null;
  readonly namespace: string | null;
  /** The holder as the API shows it: a caller's name, or `job/NAMESPACE/NAME/ADMISSION`. */
  readonly holder: string | null;
  readonly olderThanMs: number | null;
  /** True: only tokens of callers that do not lapse. Omitted: false. */
  readonly neverLapses?: boolean;
  readonly shown?: ShownTokens | null;
};

/** The tokens that a caller may see: those of pools with these prefixes, and its own. Omitted or null: all. */
export type ShownTokens = { readonly pools: readonly string[]; readonly holder: string };

/** True if a pool is one of those that these prefixes name. */
export function isPoolShown(pool: string, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => pool === prefix || pool.startsWith(`${prefix}:`) || pool.startsWith(`${prefix}/`));
}

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
