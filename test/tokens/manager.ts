import assert from "node:assert/strict";
import { inProcessCounters } from "../../src/adapters/counters/in-process/in-process-counters.ts";
import type { RequestedAllocation } from "../../src/core/quota/calls.ts";
import type { Counters } from "../../src/core/quota/counters.ts";
import type { QuotaEvents } from "../../src/core/quota/events.ts";
import type { LedgerOf } from "../../src/core/quota/ledger.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { Domains } from "../../src/tokens/domain/domains.ts";
import { LimitChanges, QUEUES_DOMAIN } from "../../src/tokens/limit-changes.ts";
import type { QuotaStore } from "../../src/tokens/ports.ts";
import { Reaper } from "../../src/tokens/reaper/reaper.ts";
import { createResourceManager } from "../../src/tokens/resource-manager.ts";

/** An event that was reported to operators. */
type ReportedEvent = { readonly event: keyof QuotaEvents; readonly facts: unknown };

export function listeningEvents() {
  const reported: ReportedEvent[] = [];
  const hear =
    (event: keyof QuotaEvents) =>
    (facts: unknown): void =>
      void reported.push({ event, facts });
  const events: QuotaEvents = {
    domainClosed: hear("domainClosed"),
    domainOpened: hear("domainOpened"),
    domainFailed: hear("domainFailed"),
    granted: hear("granted"),
    waited: hear("waited"),
    expired: hear("expired"),
    quotaGrantEnded: hear("quotaGrantEnded"),
    doubted: hear("doubted"),
    ticked: hear("ticked"),
    reconciled: hear("reconciled"),
    poolsSeen: hear("poolsSeen"),
    loopFailed: hear("loopFailed"),
  };
  return { reported, events };
}

/** Starts the resource manager of one process. Processes may share the ledger and counters. */
export function startManager(of: {
  readonly ledgerOf: LedgerOf;
  readonly store: QuotaStore;
  readonly clock: Clock;
  readonly countersOf?: (domain: string) => Promise<Counters>;
  readonly wakePlanner?: () => void;
}) {
  const { reported, events } = listeningEvents();
  const own = new Map<string, Counters>();
  const inProcess = async (domain: string) => {
    const counters = own.get(domain) ?? inProcessCounters();
    own.set(domain, counters);
    return counters;
  };
  const { clock, ledgerOf, store, countersOf = inProcess, wakePlanner = () => undefined } = of;
  const domains = new Domains({ clock, random: () => 0, ledgerOf, store, countersOf, events });
  const limitChanges = new LimitChanges({ domains, events, wakePlanner });
  const manager = createResourceManager({ clock, domains, store, events, limitChanges, wakePlanner });
  const reapers = new Map<string, Reaper>();
  return {
    manager,
    limitsChanged: () => limitChanges.changed(QUEUES_DOMAIN),
    domains,
    events,
    reported,
    domain: (domain = "default", durability: "LEDGER" | "REDIS" = "LEDGER") => domains.domain({ domain, durability }),
    /** Runs a round of the reaper of each open domain. */
    reap: async () => {
      for (const domain of domains.ready()) {
        const reaper = reapers.get(domain.name) ?? new Reaper(domain, { epoch: () => 1 });
        reapers.set(domain.name, reaper);
        await reaper.runOnce();
      }
    },
    /** Starts each reaper anew, so that its next round does everything that it does at times. */
    restartReapers: () => reapers.clear(),
    /** Reports that renewals arrive, as every api process does each second. */
    report: async () => {
      for (const { epochs, counters } of domains.ready())
        if (epochs.current !== null) await counters.report(epochs.current);
    },
    close: () => domains.close(),
  };
}

export type TestManager = ReturnType<typeof startManager>;

export const POOL = "ex:slots";

export function allocation(overrides: Partial<RequestedAllocation> = {}): RequestedAllocation {
  return {
    pool: POOL,
    token: "t1",
    project: "vision",
    namespace: "team",
    amount: 1,
    caps: { project: null, namespace: null },
    queue: null,
    lease: { kind: "default" },
    ...overrides,
  };
}

/** Renews leases and returns the answers. Fails if the request is refused. */
export async function renewals(
  at: TestManager,
  of: { readonly holder?: string; readonly tokens?: readonly string[]; readonly leaseMs?: number } = {},
) {
  const { holder = "flyte", tokens: names = ["t1"], leaseMs = null } = of;
  const tokens = names.map((token) => ({ pool: POOL, token }));
  const answers = await at.manager.renew({ holder, tokens, leaseMs });
  if ("kind" in answers) assert.fail(answers.kind);
  return answers;
}

export const NO_WISHES = {
  quota: null,
  projectDefault: null,
  namespaceDefault: null,
  queue: null,
  domain: null,
  defaultLeaseMs: null,
  maxLeaseMs: null,
  durability: null,
} as const;
