import { tokenKey } from "../../core/quota/allocations.ts";
import type { AllocationRef, Counters, GivenBack, LedgerRow, TokenName } from "../../core/quota/counters.ts";
import type { Ledger, ReleaseOutcome } from "../../core/quota/ledger.ts";
import { UnavailableError } from "../../runtime/unavailable-error.ts";

/**
 * Returns the ledger of a domain of durability REDIS, in which everything that the counters hold is granted. Only the
 * epoch and the limits come from the database's ledger. So counters that were lost are opened once, and empty.
 */
export function counterLedger(
  domain: string,
  of: { readonly ledger: Ledger; readonly counters: Pick<Counters, "find" | "giveBack" | "used"> },
): Ledger {
  const { ledger, counters } = of;
  const find = async (tokens: readonly TokenName[]) => {
    const found = await counters.find(tokens);
    if (found === "closed") throw beingOpened(domain);
    return found;
  };
  const release: Ledger["release"] = async (requests) => {
    const outcomes = await counters.giveBack(requests);
    if (outcomes === "closed") throw beingOpened(domain);
    return outcomes.map(releaseOutcome);
  };
  return {
    raiseEpoch: ledger.raiseEpoch,
    // The ledger has nothing of this domain, so nothing to settle and no grants of quota.
    readDomain: async () => {
      const state = await ledger.readDomain();
      return state && { ...state, settled: true };
    },
    endGrants: async () => [],
    readLimits: ledger.readLimits,
    commit: async (_epoch, grants) => grants.map(() => ({ kind: "committed" })),
    release,
    releaseFrees: true,
    // A token that the counters do not hold cannot be committed: no tombstone is needed.
    bury: release,
    tombstones: async () => [],
    forgetTombstones: async () => undefined,
    voidGrants: async (tokens) => {
      const found = await find(tokens);
      return tokens.map((token, at) => (found[at]?.fence === token.fence ? "live" : "gone"));
    },
    untoldTurnOvers: async () => [],
    confirmTurnOvers: async () => undefined,
    withdrawEnded: async () => 0,
    unconfirmedReleases: async () => [],
    confirmReleases: async () => undefined,
    unconfirmedShrinks: async () => [],
    confirmShrinks: async () => undefined,
    pruneReleases: async () => 0,
    findLive: async (tokens) => (await find(tokens)).filter((token) => token !== null),
    readUsed: () => counters.used(),
    readBoth: async (readCounters) => {
      const moment = await readCounters([]);
      return moment === "closed" ? moment : { counters: moment.used, ledger: moment.used, sameLimits: true };
    },
  };
}

function beingOpened(domain: string): UnavailableError {
  return new UnavailableError(`the quota domain "${domain}" is being opened`);
}

function releaseOutcome(given: GivenBack): ReleaseOutcome {
  if (given.kind !== "freed") return given;
  const { confirmed: _confirmed, ...allocation } = given.held;
  return { kind: "released", ref: refOf(allocation), allocation };
}

/** Maps `tokenKey` to the row. */
export function byToken(rows: readonly LedgerRow[]): ReadonlyMap<string, LedgerRow> {
  return new Map(rows.map((row) => [tokenKey(row), row]));
}

export function refOf({ pool, token, fence }: AllocationRef): AllocationRef {
  return { pool, token, fence };
}
