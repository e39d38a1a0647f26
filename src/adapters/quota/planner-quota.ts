import type { Counters, LineRef } from "../../core/quota/counters.ts";
import type { Desk } from "./desk.ts";
import { pushLimits } from "./push-limits.ts";
import { resolve } from "./reap.ts";
import { settleReleases } from "./settle-releases.ts";

/** A round waits so long for a domain that is being opened. */
const OPEN_MS = 2_000;

type TokenName = { readonly pool: string; readonly token: string };

/** A domain as the planner uses it: it grants for itself, and makes good what it was granted in the transaction that records the admission. */
export function plannerQuota(desk: Desk) {
  const { domain, counters, ledger } = desk;
  /** The limits that these counters were given last from here. */
  let known = { epoch: -1, version: -1 };
  return {
    open: () => domain.openEpoch(OPEN_MS),
    lost: (epoch: number, why: string) => domain.lost(epoch, why),
    notOpened: (epoch: number) => domain.notOpened(epoch),
    catchUp: async (epoch: number) => {
      const stored = await ledger.readEpoch();
      if (stored !== null && (known.epoch !== epoch || stored.limitsVersion > known.version)) {
        await pushLimits(desk, epoch);
        known = { epoch, version: stored.limitsVersion };
      }
      await settleReleases(desk, epoch);
    },
    counters: counters as Pick<Counters, "grant" | "stand" | "leave" | "onOffer">,
    confirm: (epoch: number, refs: readonly LineRef[]) => desk.confirm(epoch, refs),
    giveBack: async (epoch: number, tokens: readonly TokenName[]) => {
      const found = await counters.find(tokens);
      if (found === "closed") return domain.notOpened(epoch);
      const doubtful = found.flatMap((token) => (token === null || token.confirmed ? [] : token));
      await resolve(desk, epoch, doubtful);
    },
  };
}
