/** Serves quota admins: a queue's nominal quota of a pool that is raised until a time. */

/** A queue has one grant of a pool at most. */
export type QuotaGrant = {
  readonly queue: string;
  /** The pool. */
  readonly flavor: string;
  /** How much more than its nominal quota the queue has. */
  readonly amount: number;
  readonly untilMs: number;
  /** Who granted it. */
  readonly actor: string;
  /** Empty: no reason was given. */
  readonly reason: string;
  readonly atMs: number;
};

/** The longest time from now until a grant ends: 366 days. */
export const GRANT_MS_MAX = 366 * 86_400_000;

/** How a grant or its end was recorded. */
export type QuotaGrantOutcome =
  | { readonly kind: "done"; readonly grant: QuotaGrant }
  | { readonly kind: "unknownQueue" }
  /** The queue has no quota of the pool that could be raised. */
  | { readonly kind: "noQuota" }
  /** Quota and grant together would be more than 2^53 − 1. `nominal` is the quota. */
  | { readonly kind: "tooMuch"; readonly nominal: number }
  /** There is no grant to end. */
  | { readonly kind: "noGrant" };
