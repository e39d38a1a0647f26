/** Serves everything that holds tokens: the functions that the tokens stage needs of the store. */
import type { AuditNote, AuditPage, AuditQuery } from "../core/admin/audit.ts";
import type { ChangeOutcome } from "../core/admin/change-outcome.ts";
import type { ForcedRelease, ForceReleaseAnswer, LedgerPage, LedgerQuery, PoolQuery } from "../core/quota/admin.ts";
import type { AllocationRef } from "../core/quota/counters.ts";
import type { LedgerCheck } from "../core/quota/ledger.ts";
import type {
  PoolChange,
  PoolFreeze,
  PoolRecord,
  PoolSettings,
  RegisteredDomain,
  RegisterOutcome,
} from "../core/quota/pools.ts";

/** The rest of the store beside the ledger: pools, listings and the audit log. */
export type QuotaStore = {
  readonly find: (names: readonly string[]) => Promise<readonly PoolSettings[]>;
  readonly queueExists: (name: string) => Promise<boolean>;
  /** Lists the domains that have pools. */
  readonly listDomains: () => Promise<readonly RegisteredDomain[]>;
  readonly register: (
    change: PoolChange,
    by: { readonly version: number; readonly actor: string },
  ) => Promise<RegisterOutcome<PoolRecord>>;
  /** Deletes a pool, unless the ledger, a queue or a cluster uses it, and writes an audit entry. Version 0: any. */
  readonly remove: (
    name: string,
    by: { readonly version: number; readonly actor: string },
  ) => Promise<ChangeOutcome<PoolRecord>>;
  /** Freezes a pool or ends that, and writes an audit entry. */
  readonly freeze: (change: PoolFreeze) => Promise<ChangeOutcome<PoolRecord>>;
  readonly get: (name: string) => Promise<PoolRecord | null>;
  readonly list: (
    query: PoolQuery,
  ) => Promise<{ readonly pools: readonly PoolRecord[]; readonly next: string | null } | "badCursor">;
  readonly listAllocations: (query: LedgerQuery) => Promise<LedgerPage | "badCursor">;
  /** Releases a token of any holder except a job's live admission, and writes an audit entry. */
  readonly forceRelease: (
    forced: ForcedRelease,
  ) => Promise<
    | { readonly kind: "released"; readonly ref: AllocationRef }
    | { readonly kind: "notHeld" }
    | Extract<ForceReleaseAnswer, { readonly kind: "liveAdmission" }>
  >;
  /** Compares the ledger with its own rows and with the records of jobs. Null: all pools. */
  readonly check: (pool: string | null) => Promise<LedgerCheck>;
  /** Repairs everything that `check` finds, and returns what it found. */
  readonly repair: (pool: string | null) => Promise<LedgerCheck>;
  readonly appendAudit: (note: Omit<AuditNote, "timeMs">) => Promise<void>;
  readonly listAudit: (query: AuditQuery) => Promise<AuditPage | "badCursor">;
};
