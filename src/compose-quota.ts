/** Tokens of one process: its quota domains, the resource manager in front of them, and the loops behind. Belongs to the composition root. */
import { Domains } from "./adapters/quota/domains.ts";
import { plannerQuota } from "./adapters/quota/planner-quota.ts";
import { PoolFacts } from "./adapters/quota/pool-facts.ts";
import { tellLimits } from "./adapters/quota/push-limits.ts";
import { runReapers, runReports } from "./adapters/quota/quota-loops.ts";
import { createResourceManager } from "./adapters/quota/resource-manager.ts";
import { createTaskTokens } from "./adapters/quota/task-tokens.ts";
import { timedCounters } from "./adapters/quota/timed-counters.ts";
import { type Base, runLoops } from "./compose.ts";
import type { Counters } from "./core/quota/counters.ts";

/** Where queues are counted, and jobs with them. */
const QUEUES = { domain: "default", durability: "LEDGER" } as const;
/** A start waits so long for the domain of queues; where it does not open it goes on, and so does the opening. */
const OPEN_MS = 5_000;

/** Opens the domain of queues and sees to every domain that has pools, until the parts are closed. */
export async function startQuota(base: Base, countersOf: (domain: string) => Promise<Counters>) {
  const { clock, store, telemetry, observer, tell, member, parts } = base;
  const events = telemetry.quota;
  const domains = new Domains({
    clock,
    random: Math.random,
    ledger: observer.ledger(store.ledger),
    store: store.pools,
    countersOf: async (domain) => timedCounters(await countersOf(domain), clock, events.scriptRan),
    events,
  });
  parts.defer(() => domains.close());
  const desk = await domains.desk(QUEUES);
  await desk.domain.openEpoch(OPEN_MS).catch((error: unknown) => events.domainFailed({ domain: QUEUES.domain, error }));
  const loops = { clock, domains, events, lease: (name: string) => member.lease(name) };
  runLoops(parts, (signal) => runReapers(loops, signal));
  const manager = createResourceManager({ clock, domains, store: store.pools, events, onPoolChanged: tell.planner });
  return {
    manager,
    tasks: createTaskTokens({ domains, facts: new PoolFacts(clock, store.pools) }),
    planner: plannerQuota(desk),
    telling: (admin: Base["store"]["admin"]) => tellingAdmin(admin, () => tellLimits({ domains, events }, QUEUES)),
    /** For a process that answers callers: leases run only while one does. */
    startReports: () => runLoops(parts, (signal) => runReports(loops, signal)),
  };
}

type Changes<Queue, Change> = {
  readonly createQueue: (queue: Queue) => Promise<Change>;
  readonly updateQueue: (queue: Queue & { readonly version: number }) => Promise<Change>;
  readonly deleteQueue: (name: string) => Promise<Change>;
};

/** An admin whose changes of queues the counters hear of before they are answered. */
function tellingAdmin<Queue, Change, Admin>(
  admin: Admin & Changes<Queue, Change>,
  tell: () => Promise<void>,
): Admin & Changes<Queue, Change> {
  const told = async (change: Promise<Change>) => {
    const outcome = await change;
    await tell();
    return outcome;
  };
  return {
    ...admin,
    createQueue: (queue) => told(admin.createQueue(queue)),
    updateQueue: (queue) => told(admin.updateQueue(queue)),
    deleteQueue: (name) => told(admin.deleteQueue(name)),
  };
}
