/** Serves teams and callers that share pools: the contract of the counters that keep every pool within its quota. */
import type { Freeze } from "./freeze.ts";

/**
 * Limits that a request sets for its own project and namespace in the pool. The tighter of these and the pool's
 * defaults counts. Null: the default alone. 0 admits nothing.
 */
export type Caps = { readonly project: number | null; readonly namespace: number | null };

/**
 * One allocation of a request: an amount of one pool, charged to a project and a namespace. A request gets all of its
 * allocations or none.
 */
export type Allocation = {
  /** The pool, e.g. `gpu/h100`. */
  readonly pool: string;
  /** Names the grant within its pool. A job's: `job/<uid>/admission/<n>/step/<k>/<planner epoch>`. */
  readonly token: string;
  /** 1 to 2^53 − 1. */
  readonly amount: number;
  readonly project: string;
  readonly namespace: string;
  /** The queue that is charged, together with the queues above it. Null: none. */
  readonly queue: string | null;
  readonly caps: Caps;
  /** The token lapses this long after its grant or last renewal, on the domain's lease clock. Null: it never lapses. */
  readonly leaseMs: number | null;
};

/** The holder of a token: the admission of a job, or an external caller by name. */
export type Holder =
  | { readonly kind: "admission"; readonly jobUid: string; readonly admission: number }
  | { readonly kind: "caller"; readonly name: string };

/** A scope in which an allocation is counted. Names match whole, never by prefix. */
export type Scope =
  | { readonly kind: "pool"; readonly pool: string }
  | { readonly kind: "project"; readonly pool: string; readonly project: string }
  | { readonly kind: "namespace"; readonly pool: string; readonly project: string; readonly namespace: string }
  | { readonly kind: "queue"; readonly pool: string; readonly queue: string };

/** The limit that refused a grant: `requested ≤ limit − used − reservedForHead` was false at this scope. */
export type Violation = {
  readonly scope: Scope;
  readonly used: number;
  readonly limit: number;
  /**
   * The amount that the allocation charges at this scope. For a queue above another: the part that exceeds the
   * guarantees of the queues below.
   */
  readonly requested: number;
  /** The room that the pool reserves for the head of its waiting line. 0: none. */
  readonly reservedForHead: number;
  /** The pool or the queue is frozen, and its limit is 0 until that ends. Omitted: it is not. */
  readonly frozen?: true;
};

export type TokenName = { readonly pool: string; readonly token: string };

/** One granted allocation. `fence` is epoch × 2^32 + counter. Allocations that were granted together share it. */
export type AllocationRef = { readonly pool: string; readonly token: string; readonly fence: bigint };

/**
 * The amount, at least 1, that a granted allocation keeps after its holder gave back a part. Under one fence the amount
 * only shrinks.
 */
export type Rest = AllocationRef & { readonly amount: number };

/**
 * A part of a granted allocation that is turned over to an heir. The allocation `from` keeps the amount that it names;
 * 0: nothing, and it ends. The heir gets `to`, a token of the same pool that does not lapse, with at most the amount
 * that is taken. Tokens that neither of them has are free.
 */
export type TurnOver = {
  readonly from: AllocationRef & { readonly kept: number };
  readonly to: Omit<LedgerRow, "leaseMs">;
};

export type Grant = {
  readonly kind: "granted";
  readonly fence: bigint;
  /** True: an earlier call granted it. */
  readonly held: boolean;
  /** True: the counters know that the ledger has recorded the grant. */
  readonly confirmed: boolean;
  /** For each allocation, the time until it lapses. Null: never. */
  readonly expiresInMs: readonly (number | null)[];
};

/** The token has another holder or amount, has lapsed, or was not granted together with the other allocations. */
export type Conflict = {
  readonly kind: "conflict";
  readonly pool: string;
  readonly token: string;
  readonly confirmed: boolean;
};

/** The domain holds its maximum number of tokens. */
export type Full = { readonly kind: "full"; readonly tokensMax: number };

/** The counters of the domain are being rebuilt, or have another epoch than the caller. */
export type Closed = { readonly kind: "closed" };

export type GrantOutcome =
  | Grant
  /** `index` is that of the allocation, from 0. */
  | { readonly kind: "exhausted"; readonly violation: Violation; readonly index: number }
  | Conflict
  | Full
  | Closed;

/** A live row of the ledger. The counters are rebuilt from these rows. */
export type LedgerRow = Omit<Allocation, "caps"> & { readonly holder: Holder; readonly fence: bigint };

/** The limits of a pool: for the whole pool, and the defaults for each project and each namespace. Null: no limit. */
export type PoolLimit = {
  readonly pool: string;
  readonly quota: number | null;
  readonly projectDefault: number | null;
  readonly namespaceDefault: number | null;
  /** Nothing more of the pool is granted. Omitted: it is not frozen. */
  readonly freeze?: Freeze;
};

/**
 * A queue's limits in one pool. Its use never exceeds `ceiling`. Its use above `guarantee` is charged to the parent
 * too.
 */
export type QueueLimit = {
  readonly queue: string;
  readonly pool: string;
  readonly parent: string | null;
  readonly ceiling: number;
  readonly guarantee: number;
  /** Nothing more is granted to the queue: it is frozen, or one above it. Omitted: none is. */
  readonly freeze?: Freeze;
};

/**
 * All limits of a domain. A pool that is not listed has limit 0, and so has a queue in a pool for which it is not
 * listed. Versions grow; the counters ignore an older version.
 */
export type Limits = {
  readonly version: number;
  readonly pools: readonly PoolLimit[];
  readonly queues: readonly QueueLimit[];
  /** The maximum number of tokens in the domain. */
  readonly tokensMax: number;
  /** The maximum number of waiters in the domain. */
  readonly waitersMax: number;
};

export type HeldToken = LedgerRow & { readonly confirmed: boolean };

/** A held token as it is now. `expiresInMs` is null if the token never lapses, and 0 or less if it has lapsed. */
export type FoundToken = HeldToken & { readonly expiresInMs: number | null };

/** The use of one scope. */
export type ScopeSum = { readonly scope: Scope; readonly used: number };

/** The counters of a domain at one moment. */
export type CountersMoment = {
  readonly used: readonly ScopeSum[];
  readonly limitsVersion: number;
  /** Every token that is not confirmed, and those of the asked tokens that are held. */
  readonly tokens: readonly HeldToken[];
};

/** A place in a pool's waiting line. A request that waits for several pools has a place in each. */
export type WaiterView = {
  readonly waiter: string;
  readonly pool: string;
  readonly holder: Holder;
  /** The amount that it requests from this pool. */
  readonly amount: number;
  readonly priority: number;
  readonly sinceMs: number;
};

export type GrantRequest = {
  readonly epoch: number;
  readonly holder: Holder;
  readonly allocations: readonly Allocation[];
  /** A 32-bit integer. A higher priority goes first. */
  readonly priority: number;
  /**
   * The caller's own place in the waiting line. It does not block its own request, and a grant removes it. Null: the
   * caller does not wait.
   */
  readonly waiter: string | null;
};

/** One request of a call that grants many. */
export type BatchedGrant = Omit<GrantRequest, "epoch"> & {
  /**
   * Requests of one chain keep their order: once one of them is not granted, the later ones are not tried. Null: the
   * request is in no chain.
   */
  readonly chain: string | null;
  /** True: if a pool refuses this request, the call tries none of the later ones. */
  readonly stops: boolean;
};

/** `notTried`: an earlier request of the same call was not granted, so this one was not looked at. */
export type BatchedOutcome = GrantOutcome | { readonly kind: "notTried" };

export type StandRequest = {
  readonly epoch: number;
  /** A unique name, never used for another waiter. */
  readonly waiter: string;
  readonly holder: Holder;
  readonly allocations: readonly Allocation[];
  /** As in `GrantRequest`. */
  readonly priority: number;
  /**
   * The time since which the request waits. Among equal priorities the earlier one goes first. The caller repeats it,
   * so that it survives a rebuild of the counters.
   */
  readonly sinceMs: number;
  /**
   * True: the waiting line grants the request itself, which has exactly one allocation. False: the place only reserves
   * room, and the waiter asks for the grant itself, as the planner does for a gang.
   */
  readonly grants: boolean;
};

export type StandOutcome =
  | Grant
  /**
   * `position` counts from 1, in the waiting line where most others are ahead. A null violation: the place only
   * reserves, and a grant would succeed now.
   */
  | { readonly kind: "waiting"; readonly position: number; readonly violation: Violation | null }
  /** The request exceeds a limit even if nothing is in use. */
  | { readonly kind: "never"; readonly violation: Violation }
  | Conflict
  | { readonly kind: "lineFull"; readonly waitersMax: number }
  | Full
  | Closed;

/** A token to give back. A null member may be anything. */
export type GiveBack = {
  readonly pool: string;
  readonly token: string;
  readonly holder: Holder | null;
  readonly project: string | null;
  readonly namespace: string | null;
  readonly fence: bigint | null;
};

export type GivenBack =
  | { readonly kind: "freed"; readonly held: HeldToken }
  /** Also a token with another fence. */
  | { readonly kind: "notHeld" }
  | { readonly kind: "otherHolder"; readonly holder: Holder }
  | { readonly kind: "otherScope"; readonly project: string; readonly namespace: string };

export type RenewOutcome =
  | {
      readonly kind: "renewed";
      readonly fence: bigint;
      readonly confirmed: boolean;
      readonly expiresInMs: number | null;
    }
  /** A lapsed token cannot be renewed. */
  | { readonly kind: "lapsed"; readonly fence: bigint }
  | { readonly kind: "notHeld" | "otherHolder" };

export type TickOutcome =
  | {
      readonly kind: "ticked";
      /** The lease clock. It restarts from 0 with every `open`, and so do all leases. */
      readonly clockMs: number;
      /** False: the clock did not advance, because no api process reported that renewals can reach it. */
      readonly advanced: boolean;
      readonly limitsVersion: number;
      /** Lapsed tokens, which stay held until the caller frees them. The token that lapsed first comes first. */
      readonly lapsed: readonly (AllocationRef & { readonly holder: Holder })[];
      readonly unconfirmed: readonly HeldToken[];
    }
  | Closed;

/**
 * The live counters of one quota domain. They may refuse too much but never grant too much: a grant counts only after
 * the ledger has recorded it.
 *
 * - To grant: `grant`, then the ledger, then the answer to the caller.
 * - To release: the ledger, then `free` by fence, repeated until it answers. To release a part: `shrink` instead of
 *   `free`. Before either, `turnOver` gives heirs what the ledger has turned over to them.
 */
export type Counters = {
  /**
   * Replaces all state. The waiting lines start empty, every row gets its full lease, and every row counts as
   * confirmed. A call with an older epoch changes nothing.
   */
  readonly open: (epoch: number, of: { readonly rows: readonly LedgerRow[]; readonly limits: Limits }) => Promise<void>;
  /** Grants all allocations or none. A repeated request for a held grant returns the same fence and charges nothing. */
  readonly grant: (request: GrantRequest) => Promise<GrantOutcome>;
  /**
   * Grants up to GRANTS_MAX requests one after the other, each as `grant` does, in one atomic call. Returns the
   * outcomes in the order of the requests.
   */
  readonly grantAll: (epoch: number, requests: readonly BatchedGrant[]) => Promise<readonly BatchedOutcome[]>;
  /** Frees the allocations whose fence matches, then serves the waiting lines of their pools. */
  readonly free: (
    epoch: number,
    allocations: readonly AllocationRef[],
  ) => Promise<"closed" | readonly ("freed" | "notHeld")[]>;
  /**
   * Frees tokens for their holders, under any epoch, each on its own, then serves the waiting lines of their pools.
   * Only for counters that have no ledger: elsewhere the ledger decides what is released.
   */
  readonly giveBack: (tokens: readonly GiveBack[]) => Promise<"closed" | readonly GivenBack[]>;
  /**
   * Reduces allocations whose fence matches to the given amount, then serves the waiting lines of their pools. An
   * allocation with no more than that amount stays unchanged, so that repeated and late calls do no harm.
   */
  readonly shrink: (
    epoch: number,
    allocations: readonly Rest[],
  ) => Promise<"closed" | readonly ("shrunk" | "asItIs" | "notHeld")[]>;
  /**
   * Turns over parts of allocations whose fence matches to heirs, in order, then serves the waiting lines of their
   * pools. Each is one step: nobody else can be granted these tokens. No limit refuses it. An allocation that already
   * has no more than the amount to keep stays unchanged, so that repeated and late calls do no harm.
   */
  readonly turnOver: (
    epoch: number,
    turns: readonly TurnOver[],
  ) => Promise<"closed" | readonly ("turnedOver" | "asItIs" | "notHeld")[]>;
  /** Marks allocations as recorded by the ledger. */
  readonly confirm: (epoch: number, allocations: readonly AllocationRef[]) => Promise<"confirmed" | "closed">;
  readonly renew: (
    epoch: number,
    of: {
      readonly holder: Holder;
      readonly allocations: readonly {
        readonly pool: string;
        readonly token: string;
        readonly leaseMs: number | null;
      }[];
    },
  ) => Promise<"closed" | readonly RenewOutcome[]>;
  /**
   * Joins the waiting line, or keeps the place. A place lapses if it is not repeated for STAND_LEASE_MS of the lease
   * clock.
   */
  readonly stand: (request: StandRequest) => Promise<StandOutcome>;
  readonly leave: (epoch: number, waiter: string) => Promise<"left" | "notThere" | "closed">;
  /**
   * Advances the lease clock by `elapsedMs`, at most by TICK_MS_MAX, unless the last two ticks passed without a report.
   * Drops lapsed waiters and serves every waiting line.
   */
  readonly tick: (
    epoch: number,
    of: {
      readonly elapsedMs: number;
      /** Report allocations that have been unconfirmed for this long on the lease clock. */
      readonly unconfirmedMs: number;
      /** The maximum number of reported tokens of each kind. */
      readonly limit: number;
    },
  ) => Promise<TickOutcome>;
  /** An api process reports that renewals can reach it. */
  readonly report: (epoch: number) => Promise<"reported" | "closed">;
  /**
   * Replaces all limits. A limit below the current use takes nothing away. It blocks new grants until use falls below
   * it.
   */
  readonly setLimits: (epoch: number, limits: Limits) => Promise<"set" | "older" | "closed">;
  /** Returns the use of every scope whose use is above 0. Empty: the domain is closed, or nothing is held. */
  readonly used: () => Promise<readonly ScopeSum[]>;
  /** Reads the use of every scope together with the tokens of which the ledger may have another opinion now. */
  readonly moment: (
    epoch: number,
    tokens: readonly { readonly pool: string; readonly token: string }[],
  ) => Promise<"closed" | CountersMoment>;
  /**
   * Returns one page of held tokens, in no order. A token that is held throughout comes at least once. `after` is the
   * previous page's `next`.
   */
  readonly held: (
    after: string | null,
    count: number,
  ) => Promise<{ readonly tokens: readonly HeldToken[]; readonly next: string | null }>;
  /** Reads tokens as they are held. Null: the token is not held. Changes nothing. */
  readonly find: (
    tokens: readonly { readonly pool: string; readonly token: string }[],
  ) => Promise<"closed" | readonly (FoundToken | null)[]>;
  /** Lists all places, pool by pool, each pool in the order of its waiting line. */
  readonly waiting: () => Promise<readonly WaiterView[]>;
  /**
   * Calls the listener soon after a repeated `stand` of a waiter would be answered differently: its request was
   * granted, or its reserving place is the head and fits. A lost call only costs time. Returns a function that stops
   * the listener.
   */
  readonly onOffer: (listener: (waiter: string) => void) => () => void;
};
