import type { AuditNote, AuditPage, AuditQuery } from "../core/admin/audit.ts";
/** Serves everything that holds tokens: the functions that the tokens stage needs of the ledger and the store. */
import type { ChangeOutcome } from "../core/admin/change-outcome.ts";
import type { QuotaGrant } from "../core/admin/quota-grant.ts";
import type { ForcedRelease, ForceReleaseAnswer, LedgerPage, LedgerQuery, PoolQuery } from "../core/quota/admin.ts";
import type { TokenName } from "../core/quota/calls.ts";
import type { AllocationRef, HeldToken, LedgerRow, Limits, Rest, ScopeSum, TurnOver } from "../core/quota/counters.ts";
import type {
  BothSums,
  CommitOutcome,
  LedgerCheck,
  LedgerDomain,
  LedgerGrant,
  RaisedEpoch,
  ReadCounters,
  ReleaseOutcome,
  ReleaseRequest,
  Tombstone,
  VoidOutcome,
} from "../core/quota/ledger.ts";
import type {
  PoolChange,
  PoolFreeze,
  PoolRecord,
  PoolSettings,
  RegisteredDomain,
  RegisterOutcome,
} from "../core/quota/pools.ts";

/**
 * The ledger of all domains. A token is granted if and only if the ledger says so. Functions throw `UnavailableError`
 * while the ledger is away.
 */
export type QuotaLedger = {
  /**
   * Raises the epoch if it is `expected` (null: any) and reads everything from which counters are rebuilt. One
   * transaction, which waits for grants under the old epoch. Marks all earlier releases as confirmed: the new counters
   * never held them.
   */
  readonly raiseEpoch: (domain: string, expected: number | null) => Promise<RaisedEpoch>;
  /** Returns null for a domain that was never used. One statement, so that a domain at rest costs no more. */
  readonly readDomain: (domain: string, nowMs: number) => Promise<LedgerDomain | null>;
  /** Ends grants of quota whose time has come, and returns them. */
  readonly endGrants: (domain: string, nowMs: number) => Promise<readonly QuotaGrant[]>;
  readonly readLimits: (domain: string) => Promise<Limits>;
  /** Records grants in one transaction, in order. Of each grant it records all allocations or none. */
  readonly commit: (
    domain: string,
    epoch: number,
    grants: readonly LedgerGrant[],
    nowMs: number,
  ) => Promise<readonly CommitOutcome[]>;
  /** Releases tokens in one transaction, each on its own. A repeated request releases nothing twice. */
  readonly release: (requests: readonly ReleaseRequest[], nowMs: number) => Promise<readonly ReleaseOutcome[]>;
  /**
   * Releases tokens whose grants may be under way. Each token that is not held leaves a tombstone, so that a late
   * commit of such a grant is refused as `gone`.
   */
  readonly bury: (
    domain: string,
    requests: readonly ReleaseRequest[],
    nowMs: number,
  ) => Promise<readonly ReleaseOutcome[]>;
  readonly tombstones: (domain: string, limit: number) => Promise<readonly Tombstone[]>;
  readonly forgetTombstones: (domain: string, of: readonly Tombstone[]) => Promise<void>;
  /**
   * Makes sure that grants which the ledger does not have are never committed: records their allocations as voided,
   * unless it has them. Answers for each token.
   */
  readonly voidGrants: (tokens: readonly HeldToken[], nowMs: number) => Promise<readonly VoidOutcome[]>;
  /**
   * Lists tokens that were turned over to heirs, and that the counters still count for their former holders, in the
   * order of the turn-overs.
   */
  readonly untoldTurnOvers: (domain: string, limit: number) => Promise<readonly TurnOver[]>;
  /** The tokens that the heirs got. */
  readonly confirmTurnOvers: (tokens: readonly AllocationRef[]) => Promise<void>;
  /** Releases the holds of nominations that have ended without that. Returns the number of nominees. */
  readonly withdrawEnded: (domain: string, nowMs: number) => Promise<number>;
  /** Leaves out what the counters must not free before they know of a turn-over. So does `unconfirmedShrinks`. */
  readonly unconfirmedReleases: (domain: string, limit: number) => Promise<readonly AllocationRef[]>;
  readonly confirmReleases: (refs: readonly AllocationRef[]) => Promise<void>;
  /** Lists allocations that were partly given back and that the counters still hold with the old amount. */
  readonly unconfirmedShrinks: (domain: string, limit: number) => Promise<readonly Rest[]>;
  /** Skips allocations that have less left than `rests` says. */
  readonly confirmShrinks: (rests: readonly Rest[]) => Promise<void>;
  /** Deletes one page of old releases that the counters have freed, of any domain. Returns how many it deleted. */
  readonly pruneReleases: (nowMs: number) => Promise<number>;
  readonly findLive: (tokens: readonly TokenName[]) => Promise<readonly LedgerRow[]>;
  /** Reads the use of every scope that uses anything, in the form of `Counters.used`. */
  readonly readUsed: (domain: string) => Promise<readonly ScopeSum[]>;
  /**
   * Reads the counters while no grant, release or change of limits of the domain can be recorded, and the use that they
   * must show then. Passes `readCounters` the tokens that the counters may not know as released or reduced yet.
   */
  readonly readBoth: (domain: string, readCounters: ReadCounters) => Promise<BothSums | "closed">;
};

/** The ledger of one domain. In a domain of durability REDIS, the counters answer in its place. */
export type DomainLedger = {
  readonly raiseEpoch: (expected: number | null) => ReturnType<QuotaLedger["raiseEpoch"]>;
  readonly readDomain: () => ReturnType<QuotaLedger["readDomain"]>;
  readonly endGrants: () => ReturnType<QuotaLedger["endGrants"]>;
  readonly readLimits: () => ReturnType<QuotaLedger["readLimits"]>;
  readonly commit: (epoch: number, grants: readonly LedgerGrant[]) => ReturnType<QuotaLedger["commit"]>;
  readonly release: (requests: readonly ReleaseRequest[]) => ReturnType<QuotaLedger["release"]>;
  /** A release frees the tokens in the counters too. Omitted: it does not. */
  readonly releaseFrees?: true;
  readonly bury: (requests: readonly ReleaseRequest[]) => ReturnType<QuotaLedger["bury"]>;
  readonly tombstones: (limit: number) => ReturnType<QuotaLedger["tombstones"]>;
  readonly forgetTombstones: (of: readonly Tombstone[]) => ReturnType<QuotaLedger["forgetTombstones"]>;
  readonly voidGrants: (tokens: readonly HeldToken[]) => ReturnType<QuotaLedger["voidGrants"]>;
  readonly untoldTurnOvers: (limit: number) => ReturnType<QuotaLedger["untoldTurnOvers"]>;
  readonly confirmTurnOvers: QuotaLedger["confirmTurnOvers"];
  readonly withdrawEnded: () => ReturnType<QuotaLedger["withdrawEnded"]>;
  readonly unconfirmedReleases: (limit: number) => ReturnType<QuotaLedger["unconfirmedReleases"]>;
  readonly confirmReleases: QuotaLedger["confirmReleases"];
  readonly unconfirmedShrinks: (limit: number) => ReturnType<QuotaLedger["unconfirmedShrinks"]>;
  readonly confirmShrinks: QuotaLedger["confirmShrinks"];
  readonly pruneReleases: () => ReturnType<QuotaLedger["pruneReleases"]>;
  readonly findLive: QuotaLedger["findLive"];
  readonly readUsed: () => ReturnType<QuotaLedger["readUsed"]>;
  readonly readBoth: (readCounters: ReadCounters) => ReturnType<QuotaLedger["readBoth"]>;
};

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
