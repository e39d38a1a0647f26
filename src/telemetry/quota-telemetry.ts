import type { Logger } from "pino";
import type { Meter, Reading } from "./metrics.ts";

/** What the operator hears of tokens; each returns at once. */
export type QuotaTelemetry = {
  /** Counters and ledger may differ, or the counters are gone: nothing is granted until the domain is open again. */
  readonly domainClosed: (facts: { readonly domain: string; readonly epoch: number; readonly why: string }) => void;
  /** `rebuilt`: by this process, from the ledger; otherwise it was found open. */
  readonly domainOpened: (facts: {
    readonly domain: string;
    readonly epoch: number;
    readonly rebuilt: boolean;
    readonly why: string;
    readonly tookMs: number;
  }) => void;
  /** An attempt to open a domain failed and is repeated. */
  readonly domainFailed: (facts: { readonly domain: string; readonly error: unknown }) => void;
  /** A call that asked for tokens was answered; `scope` is what was in the way, or empty. */
  readonly granted: (facts: {
    readonly pool: string;
    readonly outcome: string;
    readonly scope: string;
    readonly tookMs: number;
  }) => void;
  /** A call that stood in a line has ended. */
  readonly waited: (facts: { readonly pool: string; readonly outcome: string; readonly tookMs: number }) => void;
  readonly expired: (facts: { readonly pool: string; readonly tokens: number }) => void;
  /** Grants that were never acknowledged: taken back, or found in the ledger. */
  readonly doubted: (facts: { readonly domain: string; readonly voided: number; readonly found: number }) => void;
  readonly reconciled: (facts: {
    readonly pool: string | null;
    readonly differences: number;
    readonly repaired: boolean;
  }) => void;
  /** A round of a domain's reaper. */
  readonly ticked: (facts: { readonly domain: string; readonly clockMs: number; readonly advanced: boolean }) => void;
  /** The pools of a domain as its reaper sees them; null: no limit. */
  readonly poolsSeen: (facts: {
    readonly domain: string;
    readonly pools: readonly {
      readonly pool: string;
      readonly used: number;
      readonly limit: number | null;
      readonly waiters: number;
    }[];
  }) => void;
  /** A call to the counters was answered, or failed. */
  readonly scriptRan: (facts: { readonly verb: string; readonly tookMs: number }) => void;
  readonly loopFailed: (facts: { readonly loop: string; readonly error: unknown }) => void;
};

/** What a reaper saw is shown for so long: then another one sees to the domain, or none does. */
const SEEN_MS = 30_000;

export function quotaTelemetry(
  log: Logger,
  meter: Meter,
  ports: {
    readonly monotonicMs: () => number;
    readonly loopFailed: QuotaTelemetry["loopFailed"];
  },
): QuotaTelemetry {
  const { loopFailed } = ports;
  return {
    domainClosed: (facts) => {
      log.warn(facts, "quota domain closed");
      meter.record("quotaDomainClosings", 1, { domain: facts.domain });
      meter.record("quotaDomainOpen", 0, { domain: facts.domain });
    },
    domainOpened: (facts) => {
      log.info(facts, "quota domain opened");
      meter.record("quotaDomainOpen", 1, { domain: facts.domain });
    },
    domainFailed: ({ domain, error }) => loopFailed({ loop: `quota domain ${domain}`, error }),
    granted: ({ pool, outcome, scope, tookMs }) => {
      meter.record("quotaGrants", 1, { pool, outcome, scope });
      meter.record("quotaGrantDuration", tookMs / 1000, { outcome });
    },
    waited: ({ pool, outcome, tookMs }) => meter.record("quotaWait", tookMs / 1000, { pool, outcome }),
    expired: ({ pool, tokens }) => {
      log.info({ pool, tokens }, "leases lapsed");
      meter.record("quotaExpired", tokens, { pool });
    },
    doubted: ({ domain, voided, found }) => {
      meter.record("quotaDoubted", voided, { domain, outcome: "voided" });
      meter.record("quotaDoubted", found, { domain, outcome: "found" });
    },
    reconciled: (facts) => {
      log.info(facts, "quota reconciled");
      meter.record("quotaDifferences", facts.differences, { repaired: String(facts.repaired) });
    },
    ticked: ({ domain, advanced }) => meter.record("quotaTicks", 1, { domain, advanced: String(advanced) }),
    poolsSeen: seenPools(meter, ports.monotonicMs),
    scriptRan: ({ verb, tookMs }) => meter.record("quotaScriptDuration", tookMs / 1000, { verb }),
    loopFailed,
  };
}

type Seen = Parameters<QuotaTelemetry["poolsSeen"]>[0]["pools"];

/** Gauges of what was seen last, for as long as it is fresh. */
function seenPools(meter: Meter, monotonicMs: () => number): QuotaTelemetry["poolsSeen"] {
  const seen = new Map<string, { readonly pools: Seen; readonly atMs: number }>();
  const readings = (numberIn: (pool: Seen[number]) => number | null) => (): readonly Reading[] =>
    [...seen.values()]
      .filter(({ atMs }) => monotonicMs() - atMs < SEEN_MS)
      .flatMap(({ pools }) =>
        pools.flatMap((one) => {
          const value = numberIn(one);
          return value === null ? [] : [{ value, labels: { pool: one.pool } }];
        }),
      );
  meter.read(
    "quotaPoolUsed",
    readings(({ used }) => used),
  );
  meter.read(
    "quotaPoolLimit",
    readings(({ limit }) => limit),
  );
  meter.read(
    "quotaPoolWaiters",
    readings(({ waiters }) => waiters),
  );
  meter.read(
    "quotaPoolOverLimit",
    readings(({ used, limit }) => (limit === null ? null : Math.max(0, used - limit))),
  );
  return ({ domain, pools }) => void seen.set(domain, { pools, atMs: monotonicMs() });
}
