import type { HeldToken, LedgerRow, Limits, LineRef, Rest, Scope } from "../../core/quota/counters.ts";
import type {
  CommitOutcome,
  LedgerCheck,
  LedgerGrant,
  ReleaseOutcome,
  ReleaseRequest,
  Tombstone,
} from "../../core/quota/ledger.ts";

/** Another epoch than the caller thought, or the new one with everything that counters are rebuilt from. */
export type RaisedEpoch =
  | { readonly kind: "raised"; readonly epoch: number; readonly rows: readonly LedgerRow[]; readonly limits: Limits }
  | { readonly kind: "moved"; readonly epoch: number };

/** The ledger of all domains: what was granted is granted because it says so. Throws `UnavailableError` while it is away. */
export type QuotaLedger = {
  /**
   * Raises the epoch if it is `expected` (or whatever it is, for null) and reads what counters are rebuilt from, in one transaction that waits
   * for grants under the old one; marks everything confirmed that was given back before.
   */
  readonly raiseEpoch: (domain: string, expected: number | null) => Promise<RaisedEpoch>;
  /** Null for a domain that was never used. */
  readonly readEpoch: (domain: string) => Promise<{ readonly epoch: number; readonly limitsVersion: number } | null>;
  readonly readLimits: (domain: string) => Promise<Limits>;
  /** One transaction; each grant by itself all lines or none; in order. */
  readonly commit: (
    domain: string,
    epoch: number,
    grants: readonly LedgerGrant[],
    nowMs: number,
  ) => Promise<readonly CommitOutcome[]>;
  /** One transaction, each by itself. Exactly once however often asked. */
  readonly release: (requests: readonly ReleaseRequest[], nowMs: number) => Promise<readonly ReleaseOutcome[]>;
  /**
   * Releases tokens of which nobody can say whether a grant is under way. Those that are not held leave a tombstone: such a grant is refused as `gone` when
   * it comes to be committed.
   */
  readonly bury: (
    domain: string,
    requests: readonly ReleaseRequest[],
    nowMs: number,
  ) => Promise<readonly ReleaseOutcome[]>;
  readonly tombstones: (domain: string, limit: number) => Promise<readonly Tombstone[]>;
  readonly forgetTombstones: (domain: string, of: readonly Tombstone[]) => Promise<void>;
  /**
   * Makes sure that a grant that the ledger does not have can never be committed: writes its lines as voided, unless they are there. Per token
   * whether the ledger has it live.
   */
  readonly voidGrants: (
    tokens: readonly HeldToken[],
    nowMs: number,
  ) => Promise<readonly ("voided" | "live" | "gone")[]>;
  readonly unconfirmedReleases: (domain: string, limit: number) => Promise<readonly LineRef[]>;
  readonly confirmReleases: (refs: readonly LineRef[]) => Promise<void>;
  /** What is left of lines of which a part was given back, as long as the counters have not heard. */
  readonly unconfirmedShrinks: (domain: string, limit: number) => Promise<readonly Rest[]>;
  /** Not confirmed by this: lines of which less is left by now. */
  readonly confirmShrinks: (rests: readonly Rest[]) => Promise<void>;
  /** Forgets a page of what was released long ago, in whichever domain, and what counters have freed; returns how many lines that were. */
  readonly pruneReleases: (nowMs: number) => Promise<number>;
  readonly findLive: (
    tokens: readonly { readonly pool: string; readonly token: string }[],
  ) => Promise<readonly LedgerRow[]>;
  /** What is used at every scope with a use above 0, as counters that hold what the ledger does would say it. */
  readonly readUsed: (domain: string) => Promise<readonly { readonly scope: Scope; readonly used: number }[]>;
};

/** The ledger as one domain uses it. For a domain that Redis alone decides, the counters answer in its place. */
export type DomainLedger = {
  readonly raiseEpoch: (expected: number | null) => ReturnType<QuotaLedger["raiseEpoch"]>;
  readonly readEpoch: () => ReturnType<QuotaLedger["readEpoch"]>;
  readonly readLimits: () => ReturnType<QuotaLedger["readLimits"]>;
  readonly commit: (epoch: number, grants: readonly LedgerGrant[]) => ReturnType<QuotaLedger["commit"]>;
  readonly release: (requests: readonly ReleaseRequest[]) => ReturnType<QuotaLedger["release"]>;
  readonly bury: (requests: readonly ReleaseRequest[]) => ReturnType<QuotaLedger["bury"]>;
  readonly tombstones: (limit: number) => ReturnType<QuotaLedger["tombstones"]>;
  readonly forgetTombstones: (of: readonly Tombstone[]) => ReturnType<QuotaLedger["forgetTombstones"]>;
  readonly voidGrants: (tokens: readonly HeldToken[]) => ReturnType<QuotaLedger["voidGrants"]>;
  readonly unconfirmedReleases: (limit: number) => ReturnType<QuotaLedger["unconfirmedReleases"]>;
  readonly confirmReleases: QuotaLedger["confirmReleases"];
  readonly unconfirmedShrinks: (limit: number) => ReturnType<QuotaLedger["unconfirmedShrinks"]>;
  readonly confirmShrinks: QuotaLedger["confirmShrinks"];
  readonly pruneReleases: () => ReturnType<QuotaLedger["pruneReleases"]>;
  readonly findLive: QuotaLedger["findLive"];
  readonly readUsed: () => ReturnType<QuotaLedger["readUsed"]>;
};

export type PoolSettings = {
  readonly name: string;
  /** Null: as large as the queues make it. */
  readonly quota: number | null;
  /** What each project, and each namespace, may use where a call does not say less; null: no limit. */
  readonly projectDefault: number | null;
  readonly namespaceDefault: number | null;
  /** Charged where a call names no queue; null: none. */
  readonly queue: string | null;
  readonly domain: string;
  /** Null: its tokens do not lapse unless a call asks for a lease. */
  readonly defaultLeaseMs: number | null;
  /** Null: any. */
  readonly maxLeaseMs: number | null;
  readonly durability: "LEDGER" | "REDIS";
};

/** A pool with what the ledger knows of its use. */
export type StoredPool = PoolSettings & {
  readonly version: number;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
  readonly used: number;
  readonly tokens: number;
};

/** Settings that are undefined stay as they are, or are a new pool's own. */
export type PoolChange = { readonly name: string } & {
  readonly [K in Exclude<keyof PoolSettings, "name">]: PoolSettings[K] | undefined;
};

export type RegisterRefusal =
  | { readonly kind: "exists" | "notFound" | "stale" }
  | { readonly kind: "inUse"; readonly by: string }
  /** Fixed at the first registration; a pool that names a queue is counted where queues are. */
  | { readonly kind: "fixed"; readonly field: "domain" | "durability"; readonly is: string }
  | { readonly kind: "tooManyPools"; readonly poolsMax: number }
  | { readonly kind: "unknownQueue"; readonly name: string };

export type AllocationFilter = {
  readonly pool: string | null;
  readonly project: string | null;
  readonly namespace: string | null;
  /** As it is shown: a caller's name, or `job/<namespace>/<name>/<admission>`. */
  readonly holder: string | null;
  readonly grantedBeforeMs: number | null;
};

export type Page = { readonly pageSize: number; readonly after: string | null };

export type StoredAllocation = LedgerRow & { readonly holderText: string; readonly grantTimeMs: number };

export type AuditEntry = {
  readonly timeMs: number;
  readonly actor: string;
  readonly action: "RegisterResourceQuota" | "ForceRelease" | "ReconcileQuota";
  readonly subject: string;
  readonly reason: string;
  readonly details: Readonly<Record<string, unknown>>;
};

/** What admins and callers ask of the store beside the ledger: pools, listings, the audit. */
export type QuotaStore = {
  readonly find: (names: readonly string[]) => Promise<readonly PoolSettings[]>;
  readonly queueExists: (name: string) => Promise<boolean>;
  /** The domains that have pools. */
  readonly listDomains: () => Promise<
    readonly { readonly domain: string; readonly durability: PoolSettings["durability"] }[]
  >;
  readonly register: (
    change: PoolChange,
    by: { readonly version: number; readonly actor: string },
  ) => Promise<{ readonly kind: "done"; readonly record: StoredPool } | RegisterRefusal>;
  readonly get: (name: string) => Promise<StoredPool | null>;
  readonly list: (
    query: Page & { readonly prefix: string },
  ) => Promise<{ readonly pools: readonly StoredPool[]; readonly next: string | null } | "badCursor">;
  readonly listAllocations: (
    query: Page & { readonly filter: AllocationFilter },
  ) => Promise<{ readonly allocations: readonly StoredAllocation[]; readonly next: string | null } | "badCursor">;
  /** Releases a token whoever holds it, and notes who did so, unless the live admission of a job holds it. */
  readonly forceRelease: (forced: {
    readonly pool: string;
    readonly token: string;
    readonly reason: string;
    readonly actor: string;
  }) => Promise<
    | { readonly kind: "released"; readonly ref: LineRef }
    | { readonly kind: "notHeld" }
    | { readonly kind: "liveAdmission"; readonly job: string }
  >;
  /** Compares the ledger with itself and with the records of jobs; null: all pools. */
  readonly check: (pool: string | null) => Promise<LedgerCheck>;
  /** Makes good what `check` finds, and says what that was. */
  readonly repair: (pool: string | null) => Promise<LedgerCheck>;
  readonly appendAudit: (entry: Omit<AuditEntry, "timeMs">) => Promise<void>;
  readonly listAudit: (
    query: Page & { readonly filter: { readonly actor: string; readonly action: string; readonly subject: string } },
  ) => Promise<{ readonly entries: readonly AuditEntry[]; readonly next: string | null } | "badCursor">;
};

/** What operators hear of. Each returns at once. */
export type QuotaEvents = {
  readonly domainClosed: (facts: { readonly domain: string; readonly epoch: number; readonly why: string }) => void;
  /** `rebuilt`: by this process, from the ledger; otherwise it was found open. */
  readonly domainOpened: (facts: {
    readonly domain: string;
    readonly epoch: number;
    readonly rebuilt: boolean;
    readonly why: string;
    readonly tookMs: number;
  }) => void;
  readonly domainFailed: (facts: { readonly domain: string; readonly error: unknown }) => void;
  /** An answer to who asked for tokens: `granted`, `held`, or why not; `scope` is what was in the way, else empty. */
  readonly granted: (facts: {
    readonly pool: string;
    readonly outcome: string;
    readonly scope: Scope["kind"] | "";
    readonly tookMs: number;
  }) => void;
  readonly waited: (facts: { readonly pool: string; readonly outcome: string; readonly tookMs: number }) => void;
  /** Leases that lapsed and whose tokens were taken back. */
  readonly expired: (facts: { readonly pool: string; readonly tokens: number }) => void;
  /** Tokens that no answer acknowledged: `voided` were taken back, `found` the ledger has. */
  readonly doubted: (facts: { readonly domain: string; readonly voided: number; readonly found: number }) => void;
  /** An admin compared counters, ledger and holders; `repaired` where what differed was made good. */
  readonly reconciled: (facts: {
    readonly pool: string | null;
    readonly differences: number;
    readonly repaired: boolean;
  }) => void;
  readonly ticked: (facts: { readonly domain: string; readonly clockMs: number; readonly advanced: boolean }) => void;
  /** The pools of a domain as its reaper sees them; null: no limit. */
  readonly poolsSeen: (facts: {
    readonly domain: string;
    readonly pools: readonly {
      readonly pool: string;
      readonly used: number;
      readonly limit: number | null;
      readonly waiters: number;
    }[];
  }) => void;
  readonly loopFailed: (facts: { readonly loop: string; readonly error: unknown }) => void;
};
