import { tokenKey } from "../../core/quota/allocations.ts";
import type { TokenName } from "../../core/quota/calls.ts";
import type { AllocationRef, Counters, GivenBack, LedgerRow } from "../../core/quota/counters.ts";
import type { ReleaseOutcome } from "../../core/quota/ledger.ts";
import type { Clock } from "../../runtime/clock.ts";
import { UnavailableError } from "../../runtime/unavailable-error.ts";
import type { DomainLedger, QuotaLedger } from "../ports.ts";

/** Returns the ledger of one domain. */
export function ledgerOf(domain: string, ledger: QuotaLedger, clock: Pick<Clock, "nowMs">): DomainLedger {
  return {
    raiseEpoch: (expected) => ledger.raiseEpoch(domain, expected),
    readDomain: () => ledger.readDomain(domain, clock.nowMs()),
    endGrants: () => ledger.endGrants(domain, clock.nowMs()),
    readLimits: () => ledger.readLimits(domain),
    commit: (epoch, grants) => ledger.commit(domain, epoch, grants, clock.nowMs()),
    release: (requests) => ledger.release(requests, clock.nowMs()),
    bury: (requests) => ledger.bury(domain, requests, clock.nowMs()),
    tombstones: (limit) => ledger.tombstones(domain, limit),
    forgetTombstones: (of) => ledger.forgetTombstones(domain, of),
    voidGrants: (tokens) => ledger.voidGrants(tokens, clock.nowMs()),
    untoldTurnOvers: (limit) => ledger.untoldTurnOvers(domain, limit),
    confirmTurnOvers: ledger.confirmTurnOvers,
    withdrawEnded: () => ledger.withdrawEnded(domain, clock.nowMs()),
    unconfirmedReleases: (limit) => ledger.unconfirmedReleases(domain, limit),
    confirmReleases: ledger.confirmReleases,
    unconfirmedShrinks: (limit) => ledger.unconfirmedShrinks(domain, limit),
    confirmShrinks: ledger.confirmShrinks,
    pruneReleases: () => ledger.pruneReleases(clock.nowMs()),
    findLive: ledger.findLive,
    readUsed: () => ledger.readUsed(domain),
    readBoth: (readCounters) => ledger.readBoth(domain, readCounters),
  };
}

/**
 * Returns the ledger of a domain of durability REDIS, in which everything that the counters hold is granted. Only the
 * epoch and the limits come from the database's ledger. So counters that were lost are opened once, and empty.
 */
export function counterLedger(
  domain: string,
  of: { readonly ledger: QuotaLedger; readonly counters: Pick<Counters, "find" | "giveBack" | "used"> },
): DomainLedger {
  const { ledger, counters } = of;
  const find = async (tokens: readonly TokenName[]) => {
    const found = await counters.find(tokens);
    if (found === "closed") throw beingOpened(domain);
    return found;
  };
  const release: DomainLedger["release"] = async (requests) => {
    const outcomes = await counters.giveBack(requests);
    if (outcomes === "closed") throw beingOpened(domain);
    return outcomes.map(releaseOutcome);
  };
  return {
    raiseEpoch: (expected) => ledger.raiseEpoch(domain, expected),
    // The ledger has nothing of this domain, so nothing to settle and no grants of quota.
    readDomain: async () => {
      const state = await ledger.readDomain(domain, 0);
      return state && { ...state, settled: true };
    },
    endGrants: async () => [],
    readLimits: () => ledger.readLimits(domain),
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
