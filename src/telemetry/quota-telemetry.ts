import type { Logger } from "pino";
import type { QuotaEvents } from "../core/quota/events.ts";
import type { GaugeReading, Meter } from "./metrics.ts";

/** Reports events of tokens, and how long calls to the counters take. */
export type QuotaTelemetry = QuotaEvents & {
  /** A call to the counters has ended. */
  readonly scriptRan: (facts: { readonly verb: string; readonly tookMs: number }) => void;
};

/** Numbers of a reaper are shown for this long. Later, another process' reaper may have newer ones. */
const FRESH_MS = 30_000;

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
      log.info({ pool, tokens }, "leases expired");
      meter.record("quotaExpired", tokens, { pool });
    },
    quotaGrantEnded: ({ queue, flavor, amount, untilMs }) => {
      log.info({ queue, pool: flavor, amount, until: new Date(untilMs).toISOString() }, "quota grant ended");
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

type SeenPools = Parameters<QuotaTelemetry["poolsSeen"]>[0]["pools"];

/** Gauges of the numbers that reapers reported last, while they are fresh. */
function seenPools(meter: Meter, monotonicMs: () => number): QuotaTelemetry["poolsSeen"] {
  const seen = new Map<string, { readonly pools: SeenPools; readonly atMs: number }>();
  const readings = (numberIn: (pool: SeenPools[number]) => number | null) => (): readonly GaugeReading[] =>
    [...seen.values()]
      .filter(({ atMs }) => monotonicMs() - atMs < FRESH_MS)
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
