import type { Scope } from "./counters.ts";

/** The events of tokens that operators see as log lines and metrics. Each function returns at once. */
export type QuotaEvents = {
  readonly domainClosed: (facts: { readonly domain: string; readonly epoch: number; readonly why: string }) => void;
  readonly domainOpened: (facts: {
    readonly domain: string;
    readonly epoch: number;
    /** True: this process loaded the counters from the ledger. False: they were open. */
    readonly rebuilt: boolean;
    readonly why: string;
    readonly tookMs: number;
  }) => void;
  readonly domainFailed: (facts: { readonly domain: string; readonly error: unknown }) => void;
  /** An answer to a request for tokens. */
  readonly granted: (facts: {
    readonly pool: string;
    /** `granted`, `held`, or the kind of the refusal. */
    readonly outcome: string;
    /** The scope that had no room, or empty. */
    readonly scope: Scope["kind"] | "";
    readonly tookMs: number;
  }) => void;
  readonly waited: (facts: { readonly pool: string; readonly outcome: string; readonly tookMs: number }) => void;
  /** Tokens were taken back because their leases lapsed. */
  readonly expired: (facts: { readonly pool: string; readonly tokens: number }) => void;
  /** Unconfirmed tokens were settled: `voided` were taken back, and the ledger has `found`. */
  readonly doubted: (facts: { readonly domain: string; readonly voided: number; readonly found: number }) => void;
  /** An admin compared counters, ledger and holders. */
  readonly reconciled: (facts: {
    readonly pool: string | null;
    readonly differences: number;
    readonly repaired: boolean;
  }) => void;
  readonly ticked: (facts: { readonly domain: string; readonly clockMs: number; readonly advanced: boolean }) => void;
  /** The pools of a domain as its reaper sees them. */
  readonly poolsSeen: (facts: {
    readonly domain: string;
    readonly pools: readonly {
      readonly pool: string;
      readonly used: number;
      /** Null: no limit. */
      readonly limit: number | null;
      readonly waiters: number;
    }[];
  }) => void;
  /** The time of a grant of quota has come. */
  readonly quotaGrantEnded: (grant: EndedGrant) => void;
  readonly loopFailed: (facts: { readonly loop: string; readonly error: unknown }) => void;
};

/** A queue's grant of quota of a pool (`flavor`) that counted until a time. */
export type EndedGrant = {
  readonly queue: string;
  readonly flavor: string;
  readonly amount: number;
  readonly untilMs: number;
};
