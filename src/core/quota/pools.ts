import type { Freeze } from "./freeze.ts";

/** `LEDGER`: the database has the last word on a pool's tokens. `REDIS`: the counters alone decide. */
export type Durability = "LEDGER" | "REDIS";

export type PoolSettings = {
  readonly name: string;
  /** Null: the quotas of queues alone limit the pool. */
  readonly quota: number | null;
  /** Limits each project if a request sets no lower cap. Null: no limit. */
  readonly projectDefault: number | null;
  /** Limits each namespace if a request sets no lower cap. Null: no limit. */
  readonly namespaceDefault: number | null;
  /** The queue that is charged if a request names none. Null: no queue. */
  readonly queue: string | null;
  readonly domain: string;
  /** Null: tokens do not lapse unless a request asks for a lease. */
  readonly defaultLeaseMs: number | null;
  /** Null: leases may have any length. */
  readonly maxLeaseMs: number | null;
  readonly durability: Durability;
};

/** The domain and durability by which a pool is counted. */
export type RegisteredDomain = Pick<PoolSettings, "domain" | "durability">;

/** A pool with its use as the ledger knows it. The ledger knows no use of pools of durability REDIS. */
export type PoolRecord = PoolSettings & {
  /** Null: the pool is not frozen. */
  readonly freeze: Freeze | null;
  readonly version: number;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
  readonly used: number;
  readonly tokens: number;
};

/** Freezes a pool. */
export type PoolFreeze = {
  readonly name: string;
  /** Null: the freeze ends. */
  readonly reason: string | null;
  readonly actor: string;
};

/** A pool as admins see it, with its use as the counters know it. */
export type ShownPool = PoolRecord & { readonly waiters: number };

/** The settings that a registration names. Null: unchanged, or the default of a new pool. */
export type PoolRegistration = {
  readonly name: string;
  /** `AMOUNT_MAX` removes the limit. */
  readonly quota: number | null;
  /** `AMOUNT_MAX` removes the limit. */
  readonly projectDefault: number | null;
  /** `AMOUNT_MAX` removes the limit. */
  readonly namespaceDefault: number | null;
  /** Empty: no queue. */
  readonly queue: string | null;
  readonly domain: string | null;
  /** 0: tokens do not lapse. */
  readonly defaultLeaseMs: number | null;
  /** 0: leases may have any length. */
  readonly maxLeaseMs: number | null;
  readonly durability: Durability | null;
};

/** The settings that a registration writes. Undefined: unchanged, or the default of a new pool. */
export type PoolChange = { readonly name: string } & {
  readonly [K in Exclude<keyof PoolSettings, "name">]: PoolSettings[K] | undefined;
};

/** A change of nothing. */
export const UNCHANGED: Omit<PoolChange, "name"> = {
  quota: undefined,
  projectDefault: undefined,
  namespaceDefault: undefined,
  queue: undefined,
  domain: undefined,
  defaultLeaseMs: undefined,
  maxLeaseMs: undefined,
  durability: undefined,
};

/** A change would make more pools than there may be. */
export type TooManyPools = { readonly kind: "tooManyPools"; readonly poolsMax: number };

/** `Pool` is the record that the caller gets: from the store without waiters, from the tokens stage with them. */
export type RegisterOutcome<Pool> =
  | { readonly kind: "done"; readonly record: Pool }
  | { readonly kind: "notFound" | "stale" }
  /** The first registration fixed this field. A pool with a queue must use the default domain and durability LEDGER. */
  | { readonly kind: "fixed"; readonly field: "domain" | "durability"; readonly is: string }
  | TooManyPools
  | { readonly kind: "unknownQueue"; readonly name: string };
