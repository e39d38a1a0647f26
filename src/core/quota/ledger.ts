import type { AllocationLine, Holder, LedgerRow, LineRef, Scope, Violation } from "./counters.ts";

/**
 * For whom a grant or a release is asked. `lease`: by the worker that has this lease of the bucket of the holder's job, for a call of a plugin. It
 * counts only as long as nobody else has taken the bucket and the holder's admission has not released its tokens: what comes late from a worker
 * that is not the job's any more neither takes a token nor gives one back.
 */
export type AskedUnder = {
  readonly holder: Holder | null;
  readonly lease?: { readonly bucket: number; readonly epoch: number };
};

/** What counters gave, as the ledger is asked to make it good: its lines stand or fall together. */
export type LedgerGrant = {
  readonly lines: readonly AllocationLine[];
  readonly holder: Holder;
  readonly fence: bigint;
} & Pick<AskedUnder, "lease">;

export type CommitOutcome =
  /** The ledger has it, now or before under this very fence. */
  | { readonly kind: "committed" }
  /** The recorded limits refuse it: it was never granted. */
  | { readonly kind: "over"; readonly violation: Violation }
  /** A token of it is live under another fence. */
  | {
      readonly kind: "taken";
      readonly pool: string;
      readonly token: string;
      readonly holder: Holder;
      readonly amount: number;
      readonly fence: bigint;
    }
  /** This fence was voided, released or expired, or the lease that it was asked under is over. */
  | { readonly kind: "gone" }
  /** The domain is at another epoch, or the grant was made under another one. */
  | { readonly kind: "epochMoved" };

export type ReleaseReason = "released" | "expired" | "voided" | "forced" | "reconciled";

export type ReleaseRequest = {
  readonly pool: string;
  readonly token: string;
  /** Null: whoever holds it. */
  readonly holder: Holder | null;
  /** Null: any; so of the namespace and the fence. */
  readonly project: string | null;
  readonly namespace: string | null;
  readonly fence: bigint | null;
  readonly reason: ReleaseReason;
} & Pick<AskedUnder, "lease">;

/**
 * A release of what the ledger did not hold, asked for while the counters could not say whether a grant of it was under way. The next grant of that token to
 * that holder is not committed, under whatever epoch, and uses the tombstone up: counters hold a token by one grant at a time, and what they let go of is
 * voided first.
 */
export type Tombstone = Pick<ReleaseRequest, "pool" | "token" | "project" | "namespace"> & {
  readonly holder: Holder;
  /** When it was made, or made again. */
  readonly atMs: number;
};

export type ReleaseOutcome =
  | { readonly kind: "released"; readonly ref: LineRef; readonly line: LedgerRow }
  /** Or asked under a lease that is over. */
  | { readonly kind: "notHeld" }
  | { readonly kind: "otherHolder"; readonly holder: Holder }
  | { readonly kind: "otherScope"; readonly project: string; readonly namespace: string }
  /** Forced only: it belongs to the live admission of a job that has not ended. */
  | { readonly kind: "liveAdmission"; readonly jobUid: string; readonly admission: number };

/** Where the ledger does not agree with itself, or with the records of jobs. */
export type LedgerCheck = {
  /** Sums that are not what the live rows add up to. A queue's sum is that of its own lines, without those of queues below it. */
  readonly sums: readonly { readonly scope: Scope; readonly recorded: number; readonly live: number }[];
  /** Live rows of admissions that have released their tokens, or that nobody knows. */
  readonly orphans: readonly LedgerRow[];
};

const REDIS_SUFFIX = "~redis";

/** The domain whose counters hold the pools of durability REDIS that are registered in `domain`; the ledger knows no rows of it. */
export function redisDomain(domain: string): string {
  return `${domain}${REDIS_SUFFIX}`;
}

/** The registered domain that a name stands for, and which of its pools: a registered name holds no `~`. */
export function registeredDomain(name: string): {
  readonly domain: string;
  readonly durability: "LEDGER" | "REDIS";
} {
  return name.endsWith(REDIS_SUFFIX)
    ? { domain: name.slice(0, -REDIS_SUFFIX.length), durability: "REDIS" }
    : { domain: name, durability: "LEDGER" };
}
