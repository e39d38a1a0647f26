import type { Counters, LedgerRow, LineRef } from "../../core/quota/counters.ts";
import type { CommitOutcome, LedgerGrant, ReleaseOutcome, ReleaseRequest } from "../../core/quota/ledger.ts";
import { tokenKey } from "../../core/quota/lines.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Confirmations } from "./confirmations.ts";
import { QuotaDomain } from "./domain.ts";
import { byToken } from "./domain-ledger.ts";
import { GroupCommit } from "./group-commit.ts";
import { Offers } from "./offers.ts";
import type { DomainLedger, QuotaEvents } from "./ports.ts";

/** So many grants, releases or look-ups share a transaction at most. */
const GROUP_MAX = 256;
/** So many of each wait for one at most. */
const WAITING_MAX = 8_192;

type TokenName = { readonly pool: string; readonly token: string };

/** What the operations on one domain share in this process: its state, its ledger in groups, and what is told to its counters on the side. */
export type Desk = {
  readonly domain: QuotaDomain;
  readonly counters: Counters;
  readonly ledger: DomainLedger;
  readonly clock: Clock;
  readonly events: QuotaEvents;
  readonly offers: Offers;
  /** Tells the counters, soon and without an answer, that the ledger has these. */
  readonly confirm: (epoch: number, refs: readonly LineRef[]) => void;
  readonly commit: (epoch: number, grant: LedgerGrant) => Promise<CommitOutcome>;
  readonly release: (request: ReleaseRequest) => Promise<ReleaseOutcome>;
  /** Releases a token whose grant may be under way, and leaves a tombstone where it is not held. */
  readonly bury: (request: ReleaseRequest) => Promise<ReleaseOutcome>;
  readonly findLive: (token: TokenName) => Promise<LedgerRow | null>;
  /** Tells the ledger that the counters have freed what it released. */
  readonly confirmReleases: (refs: readonly LineRef[]) => Promise<void>;
  /** Resolves once nothing of it is under way any more. */
  readonly close: () => Promise<void>;
};

export function createDesk(
  of: { readonly name: string; readonly counters: Counters; readonly ledger: DomainLedger },
  ports: { readonly clock: Clock; readonly random: () => number; readonly events: QuotaEvents },
): Desk {
  const { counters, ledger } = of;
  const domain = new QuotaDomain(of, ports);
  const confirmations = new Confirmations(domain, ports.events);
  const offers = new Offers(counters);
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
  const settlements = new GroupCommit<readonly LineRef[], void>({
    ...bounds,
    what: "confirmations",
    run: async (group) => {
      await ledger.confirmReleases(group.flat());
      return group.map(() => undefined);
    },
  });
  return {
    domain,
    counters,
    ledger,
    clock: ports.clock,
    events: ports.events,
    offers,
    confirm: (epoch, refs) => confirmations.add(epoch, refs),
    commit: (epoch, grant) => commits.ask({ epoch, grant }),
    release: (request) => releases.ask(request),
    bury: (request) => burials.ask(request),
    findLive: (token) => lookUps.ask(token),
    confirmReleases: (refs) => settlements.ask(refs),
    close: async () => {
      offers.stop();
      await confirmations.idle();
      await domain.stop();
    },
  };
}
