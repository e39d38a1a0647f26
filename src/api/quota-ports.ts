import type { Caps, Violation } from "../core/quota/counters.ts";
import type { ChangeOutcome } from "./ports.ts";

export type PoolDurability = "LEDGER" | "REDIS";

/** What registering a pool sets. Null: as it is, or the default of a new pool. */
export type PoolSettings = {
  readonly name: string;
  readonly quota: number;
  /** `AMOUNT_MAX` lifts them. */
  readonly projectDefault: number | null;
  readonly namespaceDefault: number | null;
  /** Empty: none. */
  readonly queue: string | null;
  readonly domain: string | null;
  /** 0: tokens do not lapse. */
  readonly defaultLeaseMs: number | null;
  /** 0: any. */
  readonly maxLeaseMs: number | null;
  readonly durability: PoolDurability | null;
};

/** A pool as it is shown. */
export type PoolRecord = {
  readonly name: string;
  /** Null: made by a queue, and limited by queues alone. */
  readonly quota: number | null;
  /** Null: no limit of that kind. */
  readonly projectDefault: number | null;
  readonly namespaceDefault: number | null;
  readonly queue: string | null;
  readonly domain: string;
  /** Null: tokens do not lapse. */
  readonly defaultLeaseMs: number | null;
  /** Null: any. */
  readonly maxLeaseMs: number | null;
  readonly durability: PoolDurability;
  readonly version: number;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
  readonly used: number;
  readonly tokens: number;
  readonly waiters: number;
};

export type RegisterOutcome =
  | ChangeOutcome<PoolRecord>
  /** Fixed at the first registration, as `is`. */
  | { readonly kind: "fixed"; readonly field: "domain" | "durability"; readonly is: string }
  | { readonly kind: "tooManyPools"; readonly poolsMax: number }
  | { readonly kind: "unknownQueue"; readonly name: string };

export type TokenRef = { readonly pool: string; readonly token: string };

export type AllocateLine = TokenRef & {
  readonly project: string;
  readonly namespace: string;
  readonly amount: number;
  readonly caps: Caps;
  /** Null: the pool's own. */
  readonly queue: string | null;
  readonly lease: { readonly kind: "default" } | { readonly kind: "asked"; readonly ms: number };
};

export type AllocateRequest = {
  readonly lines: readonly AllocateLine[];
  readonly holder: string;
  readonly priority: number;
};

/** `line` is counted from 0. */
export type AllocateAnswer =
  | {
      readonly kind: "granted";
      readonly fence: bigint;
      readonly held: boolean;
      readonly lines: readonly (TokenRef & { readonly expireTimeMs: number | null })[];
    }
  | UsedUp
  | AllocateRefusal;

/** Pool or queue, project or namespace: something is used up. */
export type UsedUp = {
  readonly kind: "exhausted" | "namespaceQuotaExceeded";
  readonly violation: Violation;
  readonly line: number;
};

export type AllocateRefusal =
  | (TokenRef & {
      readonly kind: "heldOtherwise";
      readonly holder: string;
      readonly amount: number;
      readonly fence: bigint;
    })
  | { readonly kind: "unknownPool" | "unknownQueue"; readonly name: string; readonly line: number }
  /** Their domains or durabilities differ. */
  | { readonly kind: "apart"; readonly pools: readonly [string, string] }
  /** Queues are not counted where that pool is. */
  | { readonly kind: "queueApart"; readonly pool: string; readonly queue: string }
  | LeaseRefusal
  | { readonly kind: "tooManyTokens"; readonly tokensMax: number };

export type WaitAnswer =
  | { readonly kind: "waiting"; readonly position: number; readonly violation: Violation | null }
  | AllocateAnswer
  /** More than a limit, ever. */
  | { readonly kind: "never"; readonly violation: Violation }
  | { readonly kind: "lineFull"; readonly waitersMax: number };

export type ReleaseLine = TokenRef & {
  readonly holder: string;
  /** Null: whatever it is held under. */
  readonly project: string | null;
  readonly namespace: string | null;
};

export type ReleaseAnswer =
  | { readonly kind: "released"; readonly fence: bigint }
  | { readonly kind: "notHeld" | "otherHolder" | "unknownPool" }
  | { readonly kind: "otherScope"; readonly project: string; readonly namespace: string };

export type RenewAnswer =
  | { readonly kind: "renewed"; readonly expireTimeMs: number | null; readonly fence: bigint }
  | { readonly kind: "lost" | "otherHolder" | "unknownPool" };

/** A pool allows no lease as long as the one asked for; `line` is the first of that pool. */
export type LeaseRefusal = { readonly kind: "leaseTooLong"; readonly line: number; readonly maxLeaseMs: number };

export type ShownAllocation = TokenRef & {
  readonly amount: number;
  readonly project: string;
  readonly namespace: string;
  readonly queue: string | null;
  /** A caller's, or `job/<namespace>/<name>/<admission>`. */
  readonly holder: string;
  readonly fence: bigint;
  /** Null where only counters keep it. */
  readonly grantTimeMs: number | null;
  /** Null: it does not lapse, or the counters do not know. */
  readonly expireTimeMs: number | null;
};

/** Null and empty members ask for nothing. */
export type AllocationFilter = {
  readonly pool: string | null;
  readonly project: string | null;
  readonly namespace: string | null;
  readonly holder: string | null;
  readonly olderThanMs: number | null;
};

export type Page = { readonly pageSize: number; readonly after: string | null };

export type ForceReleaseAnswer =
  | { readonly kind: "released" | "notHeld" | "unknownPool" }
  /** Held by the live admission of a job, as `namespace/name`. */
  | { readonly kind: "liveAdmission"; readonly job: string };

export type QuotaDifference = {
  readonly kind: "counterOnly" | "ledgerOnly" | "sumDiffers" | "ledgerSumDiffers" | "holderGone";
  readonly pool: string;
  readonly subject: string;
  readonly counters: number | null;
  readonly ledger: number | null;
  readonly repaired: boolean;
};

export type ReconcileAnswer = {
  readonly differences: readonly QuotaDifference[];
  readonly repaired: boolean;
  readonly epoch: number;
};

export type AuditAction = "RegisterResourceQuota" | "ForceRelease" | "ReconcileQuota";

export type AuditEntry = {
  readonly timeMs: number;
  readonly actor: string;
  readonly action: AuditAction;
  /** The pool; empty: all. */
  readonly subject: string;
  readonly reason: string;
  readonly details: Readonly<Record<string, unknown>>;
};

/** Tokens of pools. Throws `UnavailableError` while a store is away or a domain is being rebuilt: what was asked may then have happened. */
export type ResourceManager = {
  /** `version` 0: whatever it is now. */
  readonly registerPool: (settings: PoolSettings, version: number, actor: string) => Promise<RegisterOutcome>;
  /** All lines or none. */
  readonly allocate: (request: AllocateRequest) => Promise<AllocateAnswer>;
  /** Each by itself, answered in order. */
  readonly release: (lines: readonly ReleaseLine[]) => Promise<readonly ReleaseAnswer[]>;
  /** Each by itself, answered in order, or none where one is refused; null: their pools' default leases. */
  readonly renew: (of: {
    readonly holder: string;
    readonly lines: readonly TokenRef[];
    readonly leaseMs: number | null;
  }) => Promise<readonly RenewAnswer[] | LeaseRefusal>;
  /** One line. Ends after anything but `waiting`; leaving the loop leaves the line. */
  readonly wait: (request: AllocateRequest, signal: AbortSignal) => AsyncIterable<WaitAnswer>;
  readonly getPool: (name: string) => Promise<PoolRecord | null>;
  readonly listPools: (
    query: Page & { readonly prefix: string },
  ) => Promise<{ readonly pools: readonly PoolRecord[]; readonly next: string | null } | "badCursor">;
  readonly listAllocations: (
    query: Page & { readonly filter: AllocationFilter },
  ) => Promise<
    { readonly allocations: readonly ShownAllocation[]; readonly next: string | null } | "badCursor" | "noGrantTimes"
  >;
  readonly forceRelease: (
    of: TokenRef & { readonly reason: string; readonly actor: string },
  ) => Promise<ForceReleaseAnswer>;
  /** Null pool: all. */
  readonly reconcile: (of: {
    readonly pool: string | null;
    readonly dryRun: boolean;
    readonly actor: string;
  }) => Promise<ReconcileAnswer | { readonly kind: "unknownPool" }>;
  /** Newest first; null members of the filter ask for nothing. */
  readonly listAudit: (
    query: Page & {
      readonly filter: {
        readonly action: AuditAction | null;
        readonly actor: string | null;
        readonly subject: string | null;
      };
    },
  ) => Promise<{ readonly entries: readonly AuditEntry[]; readonly next: string | null } | "badCursor">;
};
