import type { Clock } from "../../runtime/clock.ts";
import type {
  Allocation,
  AllocationRef,
  CountersMoment,
  GiveBack,
  HeldToken,
  Holder,
  LedgerRow,
  Limits,
  Rest,
  Scope,
  ScopeSum,
  TokenName,
  TurnOver,
  Violation,
} from "./counters.ts";
import type { EndedGrant } from "./events.ts";
import type { RegisteredDomain } from "./pools.ts";

/**
 * The requester of a grant or a release. With `lease`, a worker asks on behalf of a plugin, and `lease` is its lease of
 * the bucket of the holder's job. The request counts only while no other worker has taken the bucket and the holder's
 * admission has not released its tokens. So a late request of a former worker neither takes nor gives back a token.
 */
export type RequestedBy = {
  readonly holder: Holder | null;
  readonly lease?: { readonly bucket: number; readonly epoch: number };
};

/** A grant of the counters, for the ledger to record. The ledger records all of its allocations or none. */
export type LedgerGrant = {
  /** Empty: the holds of the admission cover all that it needs. */
  readonly allocations: readonly Allocation[];
  readonly holder: Holder;
  readonly fence: bigint;
  /**
   * For a new admission: everything that it needs, one allocation for each pool. The holds that its job has as a
   * nominee become its allocations, in place of the part of `needs` that the grant's allocations leave out. Holds that
   * it does not need are released. Omitted: the grant is not for a new admission.
   */
  readonly needs?: readonly Allocation[];
  /**
   * For a new admission of a gang that moves: the admission of the same job that it takes the place of. What its
   * members hold is turned over as far as `needs` has it, and all else that it holds is released. Omitted: none.
   */
  readonly movesFrom?: number;
} & Pick<RequestedBy, "lease">;

export type CommitOutcome =
  /** The ledger has recorded the grant, by this call or an earlier one. */
  | { readonly kind: "committed" }
  /** The recorded limits refuse the grant, or all that its admission needs. It was never recorded. */
  | { readonly kind: "over"; readonly violation: Violation }
  /** A token of the grant is live under another fence, or under this fence with a different amount. */
  | {
      readonly kind: "taken";
      readonly pool: string;
      readonly token: string;
      readonly holder: Holder;
      readonly amount: number;
      readonly fence: bigint;
    }
  /** The fence was voided, was released or has expired, or the requester's lease has ended. */
  | { readonly kind: "gone" }
  /** The holds of the admission's job have changed: they and the grant together are less than it needs. */
  | { readonly kind: "lacksHolds" }
  /** The domain's epoch has changed since the grant. */
  | { readonly kind: "epochMoved" };

export type ReleaseReason = "released" | "expired" | "voided" | "forced" | "reconciled";

export type ReleaseRequest = GiveBack & { readonly reason: ReleaseReason } & Pick<RequestedBy, "lease">;

/**
 * The record of a release whose token the ledger did not hold, at a time when the counters could not say whether a
 * grant of it was in progress. The ledger refuses the next grant of that token to that holder, under any epoch, and
 * deletes the tombstone. One refusal is enough: counters hold a token by one grant at a time, and void a grant before
 * they drop it.
 */
export type Tombstone = Pick<ReleaseRequest, "pool" | "token" | "project" | "namespace"> & {
  readonly holder: Holder;
  /** The time when the tombstone was last written. */
  readonly atMs: number;
};

export type ReleaseOutcome =
  | { readonly kind: "released"; readonly ref: AllocationRef; readonly allocation: LedgerRow }
  /** The token is not held, or the requester's lease has ended. */
  | { readonly kind: "notHeld" }
  | { readonly kind: "otherHolder"; readonly holder: Holder }
  | { readonly kind: "otherScope"; readonly project: string; readonly namespace: string }
  /** Forced releases only: the live admission of a job that has not ended holds the token. */
  | { readonly kind: "liveAdmission"; readonly jobUid: string; readonly admission: number };

/**
 * The state of a grant after a void. `voided`: the ledger will never commit it. `live`: the ledger holds it. `gone`: it
 * ended earlier. `turnedOver`: it ended for heirs of which the counters do not know yet; they must not free it before.
 */
export type VoidOutcome = "voided" | "live" | "gone" | "turnedOver";

/**
 * The result of raising an epoch: the new epoch with all rows and limits to rebuild the counters from, or the other
 * epoch that was found.
 */
export type RaisedEpoch =
  | { readonly kind: "raised"; readonly epoch: number; readonly rows: readonly LedgerRow[]; readonly limits: Limits }
  | { readonly kind: "moved"; readonly epoch: number };

/** Disagreements of the ledger with its own rows or with the records of jobs. */
export type LedgerCheck = {
  /** Sums that differ from their live rows. A queue's sum counts only the allocations that name the queue itself. */
  readonly sums: readonly { readonly scope: Scope; readonly recorded: number; readonly live: number }[];
  /** Live rows of admissions that have released their tokens, or of unknown admissions. */
  readonly orphans: readonly LedgerRow[];
};

/** The use of every scope at one moment: as the counters have it, and as the ledger says that they must have it. */
export type BothSums = {
  readonly counters: readonly ScopeSum[];
  readonly ledger: readonly ScopeSum[];
  /** False: a change of limits has not reached the counters, so that the sums of queues may differ. */
  readonly sameLimits: boolean;
};

/** Reads counters at one moment, with all tokens that are not confirmed and the named ones. */
export type ReadCounters = (
  tokens: readonly { readonly pool: string; readonly token: string }[],
) => Promise<CountersMoment | "closed">;

const REDIS_SUFFIX = "~redis";

/**
 * Returns the name of the counters for the pools of durability REDIS that are registered in `domain`. The ledger has no
 * rows of these pools.
 */
export function redisDomain(domain: string): string {
  return `${domain}${REDIS_SUFFIX}`;
}

/** A domain in the ledger: what it is at, and whether it has work. */
export type LedgerDomain = {
  readonly epoch: number;
  readonly limitsVersion: number;
  /** True: there are no tombstones and nominations, and nothing that the counters have not been told. */
  readonly settled: boolean;
  /** True: the time of a grant of quota has come. */
  readonly grantsDue: boolean;
};

/**
 * Returns the registered domain behind a name and the durability of the pools that are counted there. No domain's name
 * contains `~`.
 */
export function registeredDomain(name: string): RegisteredDomain {
  return name.endsWith(REDIS_SUFFIX)
    ? { domain: name.slice(0, -REDIS_SUFFIX.length), durability: "REDIS" }
    : { domain: name, durability: "LEDGER" };
}

/**
 * The ledger of one domain. A token is granted if and only if the ledger says so. Functions throw `UnavailableError`
 * while the ledger is away. In a domain of durability REDIS, the counters answer in its place.
 */
export type Ledger = {
  /**
   * Raises the epoch if it is `expected` (null: any) and reads everything from which counters are rebuilt. One
   * transaction, which waits for grants under the old epoch. Marks all earlier releases as confirmed: the new counters
   * never held them.
   */
  readonly raiseEpoch: (expected: number | null) => Promise<RaisedEpoch>;
  /** Returns null for a domain that was never used. One statement, so that a domain at rest costs no more. */
  readonly readDomain: () => Promise<LedgerDomain | null>;
  /** Ends grants of quota whose time has come, and returns them. */
  readonly endGrants: () => Promise<readonly EndedGrant[]>;
  readonly readLimits: () => Promise<Limits>;
  /** Records grants in one transaction, in order. Of each grant it records all allocations or none. */
  readonly commit: (epoch: number, grants: readonly LedgerGrant[]) => Promise<readonly CommitOutcome[]>;
  /** Releases tokens in one transaction, each on its own. A repeated request releases nothing twice. */
  readonly release: (requests: readonly ReleaseRequest[]) => Promise<readonly ReleaseOutcome[]>;
  /** A release frees the tokens in the counters too. Omitted: it does not. */
  readonly releaseFrees?: true;
  /**
   * Releases tokens whose grants may be under way. Each token that is not held leaves a tombstone, so that a late
   * commit of such a grant is refused as `gone`.
   */
  readonly bury: (requests: readonly ReleaseRequest[]) => Promise<readonly ReleaseOutcome[]>;
  readonly tombstones: (limit: number) => Promise<readonly Tombstone[]>;
  readonly forgetTombstones: (of: readonly Tombstone[]) => Promise<void>;
  /**
   * Makes sure that grants which the ledger does not have are never committed: records their allocations as voided,
   * unless it has them. Answers for each token.
   */
  readonly voidGrants: (tokens: readonly HeldToken[]) => Promise<readonly VoidOutcome[]>;
  /**
   * Lists tokens that were turned over to heirs, and that the counters still count for their former holders, in the
   * order of the turn-overs.
   */
  readonly untoldTurnOvers: (limit: number) => Promise<readonly TurnOver[]>;
  /** The tokens that the heirs got. */
  readonly confirmTurnOvers: (tokens: readonly AllocationRef[]) => Promise<void>;
  /** Releases the holds of nominations that have ended without that. Returns the number of nominees. */
  readonly withdrawEnded: () => Promise<number>;
  /** Leaves out what the counters must not free before they know of a turn-over. So does `unconfirmedShrinks`. */
  readonly unconfirmedReleases: (limit: number) => Promise<readonly AllocationRef[]>;
  readonly confirmReleases: (refs: readonly AllocationRef[]) => Promise<void>;
  /** Lists allocations that were partly given back and that the counters still hold with the old amount. */
  readonly unconfirmedShrinks: (limit: number) => Promise<readonly Rest[]>;
  /** Skips allocations that have less left than `rests` says. */
  readonly confirmShrinks: (rests: readonly Rest[]) => Promise<void>;
  /** Deletes one page of old releases that the counters have freed, of any domain. Returns how many it deleted. */
  readonly pruneReleases: () => Promise<number>;
  readonly findLive: (tokens: readonly TokenName[]) => Promise<readonly LedgerRow[]>;
  /** Reads the use of every scope that uses anything, in the form of `Counters.used`. */
  readonly readUsed: () => Promise<readonly ScopeSum[]>;
  /**
   * Reads the counters while no grant, release or change of limits of the domain can be recorded, and the use that they
   * must show then. Passes `readCounters` the tokens that the counters may not know as released or reduced yet.
   */
  readonly readBoth: (readCounters: ReadCounters) => Promise<BothSums | "closed">;
};

/** Makes the ledger of a domain, which records times of the clock. */
export type LedgerOf = (domain: string, clock: Pick<Clock, "nowMs">) => Ledger;
