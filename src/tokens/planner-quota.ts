import type { AllocationRef, Counters, TokenName } from "../core/quota/counters.ts";
import { confirmGivenBack } from "./confirm-given-back.ts";
import type { QuotaDomain } from "./domain/domain.ts";
import { pushLimits } from "./limit-changes.ts";
import { confirmOrVoid } from "./void-unconfirmed.ts";

/** How long a round waits for a domain that is opening. */
const OPEN_MS = 2_000;

/**
 * A domain as the planner uses it. The planner asks the counters for grants itself, and records each grant in the
 * transaction that records the admission.
 */
export function plannerQuota(domain: QuotaDomain) {
  const { epochs, counters, ledger } = domain;
  /** The limits that the planner last gave to these counters. */
  let pushed = { epoch: -1, version: -1 };
  return {
    open: () => epochs.openEpoch(OPEN_MS),
    lost: (epoch: number, why: string) => epochs.lost(epoch, why),
    notOpened: (epoch: number) => epochs.countersClosed(epoch),
    catchUp: async (epoch: number) => {
      const stored = await ledger.readDomain();
      if (stored !== null && (pushed.epoch !== epoch || stored.limitsVersion > pushed.version)) {
        await pushLimits(domain, epoch);
        pushed = { epoch, version: stored.limitsVersion };
      }
      if (stored !== null && !stored.settled) await confirmGivenBack(domain, epoch);
    },
    counters: counters as Pick<Counters, "grant" | "grantAll" | "stand" | "leave" | "onOffer">,
    confirm: (epoch: number, refs: readonly AllocationRef[]) => domain.confirm(epoch, refs),
    giveBack: async (epoch: number, tokens: readonly TokenName[]) => {
      const found = await counters.find(tokens);
      if (found === "closed") return epochs.countersClosed(epoch);
      const unconfirmed = found.flatMap((token) => (token === null || token.confirmed ? [] : token));
      await confirmOrVoid(domain, epoch, unconfirmed);
    },
  };
}
