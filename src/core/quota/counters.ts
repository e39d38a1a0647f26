/** What a request itself allows its project and its namespace to use of the pool, beside the pool's defaults: the tighter counts. Null: nothing beyond. 0 admits none. */
export type Caps = { readonly project: number | null; readonly namespace: number | null };

/** One line of an allocation: so much of a pool, for a scope. Granted together with its other lines or not at all. */
export type AllocationLine = {
  /** The pool, e.g. `gpu/h100`. */
  readonly pool: string;
  /** Names the grant within its pool. A job's: `job/<uid>/admission/<n>/step/<k>/<planner epoch>`. */
  readonly token: string;
  /** 1 to 2^53 − 1. */
  readonly amount: number;
  readonly project: string;
  readonly namespace: string;
  /** The queue that is charged, and with it those above it; null: none. */
  readonly queue: string | null;
  readonly caps: Caps;
  /** The token lapses so long after its grant or last renewal, on the domain's lease clock; null: never. */
  readonly leaseMs: number | null;
};

/** Who holds a token: a job's admission, or an external caller under a name of its own. */
export type Holder =
  | { readonly kind: "admission"; readonly jobUid: string; readonly admission: number }
  | { readonly kind: "caller"; readonly name: string };

/** What a line is counted in. Names match whole, never by prefix. */
export type Scope =
  | { readonly kind: "pool"; readonly pool: string }
  | { readonly kind: "project"; readonly pool: string; readonly project: string }
  | { readonly kind: "namespace"; readonly pool: string; readonly project: string; readonly namespace: string }
  | { readonly kind: "queue"; readonly pool: string; readonly queue: string };

/** What was in the way of a grant: `requested ≤ limit − used − reservedForHead` did not hold at that scope. */
export type Violation = {
  readonly scope: Scope;
  readonly used: number;
  readonly limit: number;
  /** What the line charges at that scope: its amount, or what of it exceeds the guarantees of the queues below. */
  readonly requested: number;
  /** Of the pool's room, what is kept for the head of its line; 0: nothing. */
  readonly reservedForHead: number;
};

/** One granted line: `fence` is epoch × 2^32 + counter; lines granted together share it. */
export type LineRef = { readonly pool: string; readonly token: string; readonly fence: bigint };

/** What is left of a granted line, from 1 on, after its holder gave back a part of it. Under one fence it only becomes less. */
export type Rest = LineRef & { readonly amount: number };

export type Grant = {
  readonly kind: "granted";
  readonly fence: bigint;
  /** It was granted before. */
  readonly held: boolean;
  /** The counters know that the ledger has it. */
  readonly confirmed: boolean;
  /** By line: how long until it lapses; null: never. */
  readonly expiresInMs: readonly (number | null)[];
};

/** Held by another holder, with another amount, lapsed, or not together with the other lines. */
export type Conflict = {
  readonly kind: "conflict";
  readonly pool: string;
  readonly token: string;
  readonly confirmed: boolean;
};

/** No room for more tokens in the domain. */
export type Full = { readonly kind: "full"; readonly tokensMax: number };

/** The domain is being rebuilt, or the caller's epoch is not its epoch. */
export type Closed = { readonly kind: "closed" };

export type GrantOutcome =
  | Grant
  /** `line` counts from 0. */
  | { readonly kind: "exhausted"; readonly violation: Violation; readonly line: number }
  | Conflict
  | Full
  | Closed;

/** A live row of the ledger, as counters are rebuilt from it. */
export type LedgerRow = Omit<AllocationLine, "caps"> & { readonly holder: Holder; readonly fence: bigint };

/** What a pool allows as a whole, and to each project and each namespace by default. Null: no limit of that kind. */
export type PoolLimit = {
  readonly pool: string;
  readonly quota: number | null;
  readonly projectDefault: number | null;
  readonly namespaceDefault: number | null;
};

/** `ceiling`: used ≤ it. What exceeds `guarantee` is charged to the parent too. */
export type QueueLimit = {
  readonly queue: string;
  readonly pool: string;
  readonly parent: string | null;
  readonly ceiling: number;
  readonly guarantee: number;
};

/** A pool that is not named has limit 0; so has a queue for a pool for which it is not named. Versions grow; an older one is ignored. */
export type Limits = {
  readonly version: number;
  readonly pools: readonly PoolLimit[];
  readonly queues: readonly QueueLimit[];
  /** So many tokens the domain holds at most. */
  readonly tokensMax: number;
  /** So many waiters stand in the domain's lines at most. */
  readonly waitersMax: number;
};

export type HeldToken = LedgerRow & { readonly confirmed: boolean };

/** A held token as it is now; `expiresInMs` is null where it never lapses, and not above 0 where it has. */
export type FoundToken = HeldToken & { readonly expiresInMs: number | null };

/** A place in a pool's line; one that waits for several pools has a place in each. */
export type WaiterView = {
  readonly waiter: string;
  readonly pool: string;
  readonly holder: Holder;
  /** What it asks of this pool. */
  readonly amount: number;
  readonly priority: number;
  readonly sinceMs: number;
};

export type GrantRequest = {
  readonly epoch: number;
  readonly holder: Holder;
  readonly lines: readonly AllocationLine[];
  /** A whole number of 32 bits; the higher goes first. */
  readonly priority: number;
  /** The waiter that asks, whose own place is not in its way; a grant removes it. */
  readonly waiter: string | null;
};

export type StandRequest = {
  readonly epoch: number;
  /** Names this waiter for ever. */
  readonly waiter: string;
  readonly holder: Holder;
  readonly lines: readonly AllocationLine[];
  /** As of a grant. */
  readonly priority: number;
  /** Age: the earlier stands first among equals; survives a rebuild because the caller repeats it. */
  readonly sinceMs: number;
  /** True: the line itself grants (exactly one line). False: it only reserves, and the waiter grants for itself (the planner's gang). */
  readonly grants: boolean;
};

export type StandOutcome =
  | Grant
  /** `position` counts from 1, in that of its lines where most stand before it. No violation: it only reserves, and would be granted now. */
  | { readonly kind: "waiting"; readonly position: number; readonly violation: Violation | null }
  /** Asks for more than a limit, ever. */
  | { readonly kind: "never"; readonly violation: Violation }
  | Conflict
  | { readonly kind: "lineFull"; readonly waitersMax: number }
  | Full
  | Closed;

export type RenewOutcome =
  | {
      readonly kind: "renewed";
      readonly fence: bigint;
      readonly confirmed: boolean;
      readonly expiresInMs: number | null;
    }
  /** What lapsed cannot be renewed. */
  | { readonly kind: "lapsed"; readonly fence: bigint }
  | { readonly kind: "notHeld" | "otherHolder" };

export type TickOutcome =
  | {
      readonly kind: "ticked";
      /** The lease clock. It begins anew whenever the counters are opened, and so do all leases. */
      readonly clockMs: number;
      /** False: nobody could be reached by renewals, and the clock stood. */
      readonly advanced: boolean;
      readonly limitsVersion: number;
      /** Held still, until they are freed; those that lapsed first come first. */
      readonly lapsed: readonly (LineRef & { readonly holder: Holder })[];
      readonly unconfirmed: readonly HeldToken[];
    }
  | Closed;

/**
 * Live counters of one quota domain. They may refuse too much, never grant too much: a grant counts only once the ledger has it.
 * Order of a grant: `grant`, ledger, answer. Order of a release: ledger, then `free` by fence, repeated until it answers; of a part, `shrink`.
 */
export type Counters = {
  /** Replaces everything; the line is empty, every row gets its full lease, nothing is unconfirmed. An older epoch changes nothing. */
  readonly open: (epoch: number, of: { readonly rows: readonly LedgerRow[]; readonly limits: Limits }) => Promise<void>;
  /** All lines or none; asking again for a held grant is granted with the same fence and charges nothing. */
  readonly grant: (request: GrantRequest) => Promise<GrantOutcome>;
  /** Frees lines that are held with exactly that fence, then serves the lines of their pools. */
  readonly free: (epoch: number, lines: readonly LineRef[]) => Promise<"closed" | readonly ("freed" | "notHeld")[]>;
  /**
   * Gives back what lines that are held with exactly that fence have beyond what is left of them, then serves the lines of their pools. A line that has no
   * more than that stays as it is: what is told twice or late changes nothing.
   */
  readonly shrink: (
    epoch: number,
    lines: readonly Rest[],
  ) => Promise<"closed" | readonly ("shrunk" | "asItIs" | "notHeld")[]>;
  /** The ledger has these. */
  readonly confirm: (epoch: number, lines: readonly LineRef[]) => Promise<"confirmed" | "closed">;
  readonly renew: (
    epoch: number,
    of: {
      readonly holder: Holder;
      readonly lines: readonly { readonly pool: string; readonly token: string; readonly leaseMs: number | null }[];
    },
  ) => Promise<"closed" | readonly RenewOutcome[]>;
  /** Joins the line, or stays in it: an entry that is not repeated for STAND_LEASE_MS of the lease clock lapses. */
  readonly stand: (request: StandRequest) => Promise<StandOutcome>;
  readonly leave: (epoch: number, waiter: string) => Promise<"left" | "notThere" | "closed">;
  /**
   * Advances the lease clock by `elapsedMs` (capped to TICK_MS_MAX), unless nothing reported for two ticks; drops lapsed waiters;
   * serves every line.
   */
  readonly tick: (
    epoch: number,
    of: {
      readonly elapsedMs: number;
      /** Report lines unconfirmed for so long on the lease clock. */
      readonly unconfirmedMs: number;
      /** Of each kind, so many are reported at most. */
      readonly limit: number;
    },
  ) => Promise<TickOutcome>;
  /** An api process can be reached by renewals. */
  readonly report: (epoch: number) => Promise<"reported" | "closed">;
  /** Replaces all limits. A limit below use grants nothing new until use drains, and takes nothing away. */
  readonly setLimits: (epoch: number, limits: Limits) => Promise<"set" | "older" | "closed">;
  /** What is used at every scope with a use above 0; nothing where the domain is closed. */
  readonly used: () => Promise<readonly { readonly scope: Scope; readonly used: number }[]>;
  /** Pages through everything that is held, in no order; a token that is held all the while comes at least once. `after` is the last page's `next`. */
  readonly held: (
    after: string | null,
    count: number,
  ) => Promise<{ readonly tokens: readonly HeldToken[]; readonly next: string | null }>;
  /** These tokens as they are held, null where one is not. Changes nothing. */
  readonly find: (
    tokens: readonly { readonly pool: string; readonly token: string }[],
  ) => Promise<"closed" | readonly (FoundToken | null)[]>;
  /** In line order, by pool. */
  readonly waiting: () => Promise<readonly WaiterView[]>;
  /**
   * Hears, soon, of waiters whose `stand` would answer otherwise now (granted, or a reserving head that fits). Lost ones cost time only.
   * Returns how to stop.
   */
  readonly onOffer: (listener: (waiter: string) => void) => () => void;
};
