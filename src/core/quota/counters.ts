/** One line of an allocation: so much of a pool, charged to a queue. Granted together with its other lines or not at all. */
export type AllocationLine = {
  /** The pool, e.g. `gpu/h100`. */
  readonly pool: string;
  /** Names the grant within its pool: `job/<uid>/admission/<n>/step/<k>/<planner epoch>`. */
  readonly token: string;
  readonly amount: number;
  readonly project: string;
  readonly namespace: string;
  readonly queue: string;
};

/** Who holds a token: a job's admission. */
export type Holder = { readonly jobUid: string; readonly admission: number };

/** What a line is counted in. Names match whole, never by prefix. */
export type Scope =
  | { readonly kind: "pool"; readonly pool: string }
  | { readonly kind: "project"; readonly pool: string; readonly project: string }
  | { readonly kind: "namespace"; readonly pool: string; readonly project: string; readonly namespace: string }
  | { readonly kind: "queue"; readonly pool: string; readonly queue: string };

/** What was in the way of a grant. */
export type Violation = {
  readonly scope: Scope;
  readonly used: number;
  readonly limit: number;
  readonly requested: number;
};

export type GrantOutcome =
  /** `fence` is epoch × 2^32 + counter and names this grant for ever. `held`: it was granted before, with this fence. */
  | { readonly kind: "granted"; readonly fence: bigint; readonly held: boolean }
  | { readonly kind: "exhausted"; readonly violation: Violation }
  /** The token is held by another holder or with another amount. */
  | { readonly kind: "conflict"; readonly token: string }
  /** The domain is being rebuilt, or the caller's epoch is not its epoch. */
  | { readonly kind: "closed" };

/** A live row of the ledger, as counters are rebuilt from it. */
export type LedgerRow = AllocationLine & { readonly holder: Holder; readonly fence: bigint };

/** A ceiling: what a queue may use of a pool at most. A queue without one for a pool may use nothing of it. */
export type QueueLimit = { readonly queue: string; readonly pool: string; readonly limit: number };

/**
 * Live counters of one quota domain. They may refuse too much, never grant too much: a grant counts only once the ledger has it.
 * Order of a grant: `grant`, ledger, answer. Order of a release: ledger, then `free` by fence, repeated until it answers.
 */
export type Counters = {
  /** Replaces everything by what the ledger holds and opens under `epoch`; older epochs are refused from then on. */
  readonly open: (epoch: number, rows: readonly LedgerRow[], limits: readonly QueueLimit[]) => Promise<void>;
  /** All lines or none; asking again for a held grant is granted with the same fence and charges nothing. */
  readonly grant: (request: {
    readonly epoch: number;
    readonly holder: Holder;
    readonly lines: readonly AllocationLine[];
  }) => Promise<GrantOutcome>;
  /** Frees the lines of a fence; freeing what is not held succeeds. */
  readonly free: (epoch: number, fence: bigint) => Promise<"freed" | "notHeld" | "closed">;
  /** Replaces all limits. A limit below use grants nothing new until use drains, and takes nothing away. */
  readonly setLimits: (epoch: number, limits: readonly QueueLimit[]) => Promise<"set" | "closed">;
  /** What is used at every scope with a use above 0; for checks and listings. */
  readonly used: () => Promise<readonly { readonly scope: Scope; readonly used: number }[]>;
};
