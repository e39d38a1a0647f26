import { createDesk, type Desk } from "../../src/adapters/quota/desk.ts";
import { ledgerOf } from "../../src/adapters/quota/domain-ledger.ts";
import { inProcessCounters } from "../../src/adapters/quota/in-process.ts";
import { plannerQuota } from "../../src/adapters/quota/planner-quota.ts";
import type { DomainLedger, QuotaEvents, QuotaLedger } from "../../src/adapters/quota/ports.ts";
import type { Counters } from "../../src/core/quota/counters.ts";
import type { PlannerQuota } from "../../src/planner/ports.ts";
import type { Clock } from "../../src/runtime/clock.ts";

const nothing = () => undefined;

export const DEAF: QuotaEvents = {
  domainClosed: nothing,
  domainOpened: nothing,
  domainFailed: nothing,
  granted: nothing,
  waited: nothing,
  expired: nothing,
  doubted: nothing,
  reconciled: nothing,
  ticked: nothing,
  poolsSeen: nothing,
  loopFailed: nothing,
};

/** The domain of queues as the only process of a test has it. */
export function soleDesk(of: {
  readonly clock: Clock;
  readonly ledger: DomainLedger;
  readonly counters?: Counters;
  readonly events?: Partial<QuotaEvents>;
}): Desk {
  const { clock, ledger, counters = inProcessCounters(), events } = of;
  return createDesk({ name: "default", counters, ledger }, { clock, random: () => 0, events: { ...DEAF, ...events } });
}

/** What a planner needs of tokens, on a store's ledger and counters of its own. */
export function soleQuota(of: { readonly clock: Clock; readonly ledger: QuotaLedger }): PlannerQuota {
  return plannerQuota(soleDesk({ clock: of.clock, ledger: ledgerOf("default", of.ledger, of.clock) }));
}
