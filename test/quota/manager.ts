import assert from "node:assert/strict";
import type { AllocateLine } from "../../src/adapters/quota/build-lines.ts";
import { Domains } from "../../src/adapters/quota/domains.ts";
import { inProcessCounters } from "../../src/adapters/quota/in-process.ts";
import type { QuotaEvents, QuotaLedger, QuotaStore } from "../../src/adapters/quota/ports.ts";
import { Reaper } from "../../src/adapters/quota/reaper.ts";
import { createResourceManager } from "../../src/adapters/quota/resource-manager.ts";
import type { Counters } from "../../src/core/quota/counters.ts";
import type { Clock } from "../../src/runtime/clock.ts";

/** Everything that operators were told, in order. */
export type Told = { readonly event: keyof QuotaEvents; readonly facts: unknown };

export function listeningEvents() {
  const told: Told[] = [];
  const hear =
    (event: keyof QuotaEvents) =>
    (facts: unknown): void =>
      void told.push({ event, facts });
  const events: QuotaEvents = {
    domainClosed: hear("domainClosed"),
    domainOpened: hear("domainOpened"),
    domainFailed: hear("domainFailed"),
    granted: hear("granted"),
    waited: hear("waited"),
    expired: hear("expired"),
    doubted: hear("doubted"),
    ticked: hear("ticked"),
    reconciled: hear("reconciled"),
    poolsSeen: hear("poolsSeen"),
    loopFailed: hear("loopFailed"),
  };
  return { told, events };
}

/** One process's resource manager over a ledger and counters that it may share with others. */
export function startManager(of: {
  readonly ledger: QuotaLedger;
  readonly store: QuotaStore;
  readonly clock: Clock;
  readonly countersOf?: (domain: string) => Promise<Counters>;
}) {
  const { told, events } = listeningEvents();
  const own = new Map<string, Counters>();
  const inProcess = async (domain: string) => {
    const counters = own.get(domain) ?? inProcessCounters();
    own.set(domain, counters);
    return counters;
  };
  const { clock, ledger, store, countersOf = inProcess } = of;
  const domains = new Domains({ clock, random: () => 0, ledger, store, countersOf, events });
  const manager = createResourceManager({ clock, domains, store, events, onPoolChanged: () => undefined });
  const reapers = new Map<string, Reaper>();
  return {
    manager,
    domains,
    events,
    told,
    desk: (domain = "default", durability: "LEDGER" | "REDIS" = "LEDGER") => domains.desk({ domain, durability }),
    /** A round of the reaper of each domain that is used. */
    reap: async () => {
      for (const desk of domains.ready()) {
        const reaper = reapers.get(desk.domain.name) ?? new Reaper(desk, { epoch: () => 1 });
        reapers.set(desk.domain.name, reaper);
        await reaper.runOnce();
      }
    },
    /** What every api process says each second. */
    report: async () => {
      for (const { domain, counters } of domains.ready())
        if (domain.epoch !== null) await counters.report(domain.epoch);
    },
    close: () => domains.close(),
  };
}

export type TestManager = ReturnType<typeof startManager>;

export const POOL = "ex:slots";

export function line(overrides: Partial<AllocateLine> = {}): AllocateLine {
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

/** What becomes of leases that are renewed, where none of them is refused. */
export async function renewals(
  at: TestManager,
  of: { readonly holder?: string; readonly tokens?: readonly string[]; readonly leaseMs?: number } = {},
) {
  const { holder = "flyte", tokens = ["t1"], leaseMs = null } = of;
  const lines = tokens.map((token) => ({ pool: POOL, token }));
  const answers = await at.manager.renew({ holder, lines, leaseMs });
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
