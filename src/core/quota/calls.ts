/** Serves callers of tokens: the requests and answers of the resource manager, which the API and the tokens share. */
import type { Caps, TokenName, Violation } from "./counters.ts";
import type { RequestedBy } from "./ledger.ts";

/** The lease that a request asks for. */
export type RequestedLease = { readonly kind: "default" } | { readonly kind: "asked"; readonly ms: number };

/** One allocation that a caller asks for. */
export type RequestedAllocation = TokenName & {
  readonly project: string;
  readonly namespace: string;
  readonly amount: number;
  readonly caps: Caps;
  /** Null: the pool's queue. */
  readonly queue: string | null;
  readonly lease: RequestedLease;
};

export type AllocateRequest = {
  readonly allocations: readonly RequestedAllocation[];
  /** The caller's name. */
  readonly holder: string;
  readonly priority: number;
};

/** `index` is that of the allocation, from 0. */
export type AllocateAnswer =
  | {
      readonly kind: "granted";
      readonly fence: bigint;
      /** The holder held the token before this request. */
      readonly held: boolean;
      /** Null expiry: the token does not lapse. */
      readonly allocations: readonly (TokenName & { readonly expireTimeMs: number | null })[];
    }
  | Exhausted
  | AllocateRefusal;

/** A pool, a queue, a project or a namespace has no room for the request. */
export type Exhausted = {
  readonly kind: "exhausted" | "namespaceQuotaExceeded";
  readonly violation: Violation;
  readonly index: number;
};

export type AllocateRefusal =
  | (TokenName & {
      readonly kind: "heldOtherwise";
      readonly holder: string;
      readonly amount: number;
      readonly fence: bigint;
    })
  | RequestRefusal
  | { readonly kind: "tooManyTokens"; readonly tokensMax: number };

/** Why a request is refused before the counters see it. */
export type RequestRefusal =
  | { readonly kind: "unknownPool" | "unknownQueue"; readonly name: string; readonly index: number }
  /** The pools have different domains or durabilities. One grant cannot cover both. */
  | { readonly kind: "apart"; readonly pools: readonly [string, string] }
  /**
   * Queues are counted only in the ledger, in the default domain. A pool that is counted elsewhere cannot have a queue.
   */
  | { readonly kind: "queueApart"; readonly pool: string; readonly queue: string }
  | LeaseRefusal;

/** The pool of the allocation at `index` allows no lease of the requested length. */
export type LeaseRefusal = { readonly kind: "leaseTooLong"; readonly index: number; readonly maxLeaseMs: number };

export type WaitAnswer =
  | AllocateAnswer
  | { readonly kind: "waiting"; readonly position: number; readonly violation: Violation | null }
  /** The request exceeds a limit even if nothing is used. */
  | { readonly kind: "never"; readonly violation: Violation }
  | { readonly kind: "lineFull"; readonly waitersMax: number };

export type TokenRelease = TokenName & {
  readonly holder: string;
  /** Null: any. */
  readonly project: string | null;
  readonly namespace: string | null;
};

export type ReleaseAnswer =
  | { readonly kind: "released"; readonly fence: bigint }
  | { readonly kind: "notHeld" | "otherHolder" | "unknownPool" }
  | { readonly kind: "otherScope"; readonly project: string; readonly namespace: string };

export type RenewRequest = {
  readonly holder: string;
  readonly tokens: readonly TokenName[];
  /** Null: each pool's default lease. */
  readonly leaseMs: number | null;
};

export type RenewAnswer =
  | { readonly kind: "renewed"; readonly expireTimeMs: number | null; readonly fence: bigint }
  | { readonly kind: "lost" | "otherHolder" | "unknownPool" };

/** The admission of a job for which a plugin requests tokens. The worker must hold `lease` of the job's bucket. */
export type TaskHolder = {
  readonly lease: NonNullable<RequestedBy["lease"]>;
  readonly jobUid: string;
  readonly admission: number;
  readonly taskName: string;
  readonly project: string;
  readonly namespace: string;
  readonly priority: number;
};

/** One allocation that a plugin asks for. */
export type TaskAllocation = TokenName & {
  readonly amount: number;
  /** Null: the pool's default. */
  readonly projectCap: number | null;
  /** Null: the pool's default. */
  readonly namespaceCap: number | null;
};
