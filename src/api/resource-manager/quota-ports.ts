import type { AuditPage, AuditQuery } from "../../core/admin/audit.ts";
import type { ChangeOutcome } from "../../core/admin/change-outcome.ts";
import type {
  AllocationPage,
  AllocationQuery,
  ForcedRelease,
  ForceReleaseAnswer,
  PoolQuery,
  ReconcileAnswer,
  ReconcileRequest,
} from "../../core/quota/admin.ts";
import type {
  AllocateAnswer,
  AllocateRequest,
  LeaseRefusal,
  ReleaseAnswer,
  RenewAnswer,
  RenewRequest,
  TokenRelease,
  WaitAnswer,
} from "../../core/quota/calls.ts";
import type { PoolFreeze, PoolRecord, PoolRegistration, RegisterOutcome, ShownPool } from "../../core/quota/pools.ts";

/**
 * The operations on tokens of pools. They throw `UnavailableError` while a store is away or a domain is being rebuilt.
 * The requested change may then have happened.
 */
export type TokenOperations = {
  /** Also gives the counters the new limits and wakes the planner. `version` 0: any version. */
  readonly registerPool: (
    registration: PoolRegistration,
    version: number,
    actor: string,
  ) => Promise<RegisterOutcome<ShownPool>>;
  /** Deletes a pool that nothing uses. `version` 0: any version. */
  readonly deletePool: (name: string, version: number, actor: string) => Promise<ChangeOutcome<PoolRecord>>;
  /** Freezes a pool, and gives the counters the new limits. A null reason ends the freeze. */
  readonly freezePool: (change: PoolFreeze) => Promise<ChangeOutcome<ShownPool>>;
  /** Takes all allocations or none. */
  readonly allocate: (request: AllocateRequest) => Promise<AllocateAnswer>;
  /** Releases each token on its own. The answers are in the order of the tokens. */
  readonly release: (tokens: readonly TokenRelease[]) => Promise<readonly ReleaseAnswer[]>;
  /** Renews each token on its own, in order, or none if one is refused. */
  readonly renew: (of: RenewRequest) => Promise<readonly RenewAnswer[] | LeaseRefusal>;
  /**
   * Waits for one allocation, until an answer other than `waiting`. The caller leaves the waiting line when it leaves
   * the loop.
   */
  readonly wait: (request: AllocateRequest, signal: AbortSignal) => AsyncIterable<WaitAnswer>;
  readonly getPool: (name: string) => Promise<ShownPool | null>;
  readonly listPools: (
    query: PoolQuery,
  ) => Promise<{ readonly pools: readonly ShownPool[]; readonly next: string | null } | "badCursor">;
  readonly listAllocations: (query: AllocationQuery) => Promise<AllocationPage | "badCursor" | "noGrantTimes">;
  readonly forceRelease: (forced: ForcedRelease) => Promise<ForceReleaseAnswer>;
  readonly reconcile: (request: ReconcileRequest) => Promise<ReconcileAnswer>;
  readonly listAudit: (query: AuditQuery) => Promise<AuditPage | "badCursor">;
};
