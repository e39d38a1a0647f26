import { tokenKey } from "../../core/quota/allocations.ts";
import type { AllocationRef, Counters, LedgerRow, TokenName } from "../../core/quota/counters.ts";
import type { QuotaEvents } from "../../core/quota/events.ts";
import type { CommitOutcome, Ledger, LedgerGrant, ReleaseOutcome, ReleaseRequest } from "../../core/quota/ledger.ts";
import type { Clock } from "../../runtime/clock.ts";
import { GroupCommit } from "../../runtime/group-commit.ts";
import { Confirmations } from "./confirmations.ts";
import { byToken } from "./domain-ledger.ts";
import { DomainEpochs } from "./epochs.ts";

/** At most this many grants, releases or look-ups share a transaction. */
const GROUP_MAX = 256;
/** At most this many of each wait for a transaction. */
const WAITING_MAX = 8_192;

/**
 * One quota domain as this process uses it: its counters, its ledger, and the epoch under which the counters are open.
 * All operations on the domain share it, so that their writes to the ledger go in groups.
 */
export type QuotaDomain = {
  readonly name: string;
  readonly epochs: DomainEpochs;
  readonly counters: Counters;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly events: QuotaEvents;
  readonly offers: Offers;
  /** Tells the counters in the background that the ledger has these allocations. */
  readonly confirm: (epoch: number, refs: readonly AllocationRef[]) => void;
  readonly commit: (epoch: number, grant: LedgerGrant) => Promise<CommitOutcome>;
  readonly release: (request: ReleaseRequest) => Promise<ReleaseOutcome>;
  /** Releases a token whose grant may be under way. Leaves a tombstone if the ledger does not hold the token. */
  readonly bury: (request: ReleaseRequest) => Promise<ReleaseOutcome>;
  readonly findLive: (token: TokenName) => Promise<LedgerRow | null>;
  /** Tells the ledger in the background that the counters have freed these released allocations. */
  readonly confirmReleases: (refs: readonly AllocationRef[]) => void;
  /** Resolves when nothing of the domain runs any more. */
  readonly close: () => Promise<void>;
};

export function createDomain(
  of: { readonly name: string; readonly counters: Counters; readonly ledger: Ledger },
  ports: { readonly clock: Clock; readonly random: () => number; readonly events: QuotaEvents },
): QuotaDomain {
  const { name, counters, ledger } = of;
  const { clock, events } = ports;
  const epochs = new DomainEpochs(of, ports);
  const confirmations = new Confirmations({ clock, counters, ledger, epochs, events });
  const offers = new Offers(counters);
  const { commits, releases, burials, lookUps } = ledgerGroups(ledger);
  return {
    name,
    epochs,
    counters,
    ledger,
    clock,
    events,
    offers,
    confirm: (epoch, refs) => confirmations.granted(epoch, refs),
    commit: (epoch, grant) => commits.ask({ epoch, grant }),
    release: (request) => releases.ask(request),
    bury: (request) => burials.ask(request),
    findLive: (token) => lookUps.ask(token),
    confirmReleases: (refs) => confirmations.freed(refs),
    close: async () => {
      offers.stop();
      await confirmations.close();
      await epochs.stop();
    },
  };
}

function ledgerGroups(ledger: Ledger) {
  const bounds = { groupMax: GROUP_MAX, waitingMax: WAITING_MAX };
  const commits = new GroupCommit<{ readonly epoch: number; readonly grant: LedgerGrant }, CommitOutcome>({
    ...bounds,
    what: "grants",
    fits: (first, other) => first.epoch === other.epoch,
    run: (group) =>
      ledger.commit(
        group[0]?.epoch ?? 0,
        group.map(({ grant }) => grant),
      ),
  });
  const releases = new GroupCommit<ReleaseRequest, ReleaseOutcome>({
    ...bounds,
    what: "releases",
    run: (group) => ledger.release(group),
  });
  const burials = new GroupCommit<ReleaseRequest, ReleaseOutcome>({
    ...bounds,
    what: "releases",
    run: (group) => ledger.bury(group),
  });
  const lookUps = new GroupCommit<TokenName, LedgerRow | null>({
    ...bounds,
    what: "look-ups",
    run: async (group) => {
      const live = byToken(await ledger.findLive(group));
      return group.map((token) => live.get(tokenKey(token)) ?? null);
    },
  });
  return { commits, releases, burials, lookUps };
}

/** Passes offers of the waiting line to the waiters of this process. Offers to waiters of other processes go there. */
class Offers {
  readonly #counters: Pick<Counters, "onOffer">;
  readonly #listeners = new Map<string, () => void>();
  #stop: (() => void) | null = null;

  constructor(counters: Pick<Counters, "onOffer">) {
    this.#counters = counters;
  }

  /** Calls `onOffer` on each offer to that waiter. Returns a function that stops it. */
  listen(waiter: string, onOffer: () => void): () => void {
    this.#stop ??= this.#counters.onOffer((offered) => this.#listeners.get(offered)?.());
    this.#listeners.set(waiter, onOffer);
    return () => void this.#listeners.delete(waiter);
  }

  stop(): void {
    this.#stop?.();
    this.#stop = null;
    this.#listeners.clear();
  }
}
