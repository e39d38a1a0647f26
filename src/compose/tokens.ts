/**
 * Connects the tokens of one process: its quota domains, the operations in front of them, and the loops behind them.
 */
import type { Counters } from "../core/quota/counters.ts";
import { Domains } from "../tokens/domain/domains.ts";
import { timedCounters } from "../tokens/domain/timed-counters.ts";
import { LimitChanges, QUEUES_DOMAIN } from "../tokens/limit-changes.ts";
import { plannerQuota } from "../tokens/planner-quota.ts";
import { PoolCache } from "../tokens/pool-cache.ts";
import { runReapers, runReports } from "../tokens/reaper/loops.ts";
import { createResourceManager } from "../tokens/resource-manager.ts";
import { createTaskTokens } from "../tokens/task-tokens.ts";
import { type Base, runLoops } from "./base.ts";

/** How long a start waits for the domain of queues. After that the process starts, and the domain goes on opening. */
const OPEN_MS = 5_000;

/** Opens the domain of queues, and reaps every domain that has pools until the parts are closed. */
export async function startQuota(base: Base, countersOf: (domain: string) => Promise<Counters>) {
  const { clock, store, telemetry, instrumentation, tell, member, parts } = base;
  const events = telemetry.quota;
  const domains = new Domains({
    clock,
    random: Math.random,
    ledgerOf: (name, at) => instrumentation.ledger(store.ledgerOf(name, at)),
    store: store.pools,
    countersOf: async (domain) => timedCounters(await countersOf(domain), clock, events.scriptRan),
    events,
  });
  parts.defer(() => domains.close());
  const domain = await domains.domain(QUEUES_DOMAIN);
  await domain.epochs.openEpoch(OPEN_MS).catch((error: unknown) => events.domainFailed({ domain: domain.name, error }));
  const loops = { clock, domains, events, lease: (name: string) => member.lease(name) };
  runLoops(parts, (signal) => runReapers(loops, signal));
  const wakePlanner = tell.planner;
  const limitChanges = new LimitChanges({ domains, events, wakePlanner });
  return {
    manager: createResourceManager({ clock, domains, store: store.pools, events, limitChanges, wakePlanner }),
    tasks: createTaskTokens({ domains, cache: new PoolCache(clock, store.pools) }),
    planner: plannerQuota(domain),
    /** For changes of queues and of clusters' flavors, which are counted in the domain of queues. */
    limitsChanged: () => limitChanges.changed(QUEUES_DOMAIN),
    /** For a process that serves callers: without reports of any such process, no lease runs. */
    startReports: () => runLoops(parts, (signal) => runReports(loops, signal)),
  };
}

export type Quota = Awaited<ReturnType<typeof startQuota>>;
