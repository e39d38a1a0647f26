import { inProcessCounters } from "../../src/adapters/counters/in-process/in-process-counters.ts";
import type { Counters } from "../../src/core/quota/counters.ts";
import type { QuotaEvents } from "../../src/core/quota/events.ts";
import type { Ledger, LedgerOf } from "../../src/core/quota/ledger.ts";
import type { PlannerQuota } from "../../src/planner/ports.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { createDomain, type QuotaDomain } from "../../src/tokens/domain/domain.ts";
import { plannerQuota } from "../../src/tokens/planner-quota.ts";

const nothing = () => undefined;

export const DEAF: QuotaEvents = {
  domainClosed: nothing,
  domainOpened: nothing,
  domainFailed: nothing,
  granted: nothing,
  waited: nothing,
  expired: nothing,
  quotaGrantEnded: nothing,
  doubted: nothing,
  reconciled: nothing,
  ticked: nothing,
  poolsSeen: nothing,
  loopFailed: nothing,
};

/** The quota domain of queues, in the only process of a test. */
export function soleDomain(of: {
  readonly clock: Clock;
  readonly ledger: Ledger;
  readonly counters?: Counters;
  readonly events?: Partial<QuotaEvents>;
}): QuotaDomain {
  const { clock, ledger, counters = inProcessCounters(), events } = of;
  return createDomain(
    { name: "default", counters, ledger },
    { clock, random: () => 0, events: { ...DEAF, ...events } },
  );
}

/** The planner's port for tokens, on a store's ledger. `counters` omitted: new ones in this process. */
export function soleQuota({
  clock,
  ledgerOf,
  ...of
}: {
  readonly clock: Clock;
  readonly ledgerOf: LedgerOf;
  readonly counters?: Counters;
}): PlannerQuota {
  return plannerQuota(soleDomain({ ...of, clock, ledger: ledgerOf("default", clock) }));
}
