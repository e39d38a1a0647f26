import type { QuotaEvents } from "../../core/quota/events.ts";
import { TICK_MS } from "../../core/quota/lease-clock.ts";
import type { Clock } from "../../runtime/clock.ts";
import { getOrCreate } from "../../runtime/get-or-create.ts";
import type { QuotaDomain } from "../domain/domain.ts";
import type { Domains } from "../domain/domains.ts";
import { Reaper, type ReaperLease } from "./reaper.ts";

/** How long the domains of other processes may stay unknown here. */
const DISCOVER_MS = 5_000;

export type LoopPorts = {
  readonly clock: Clock;
  readonly domains: Domains;
  /** Makes the lease of a domain's reaper from its name. Called once for each domain. */
  readonly lease: (name: string) => ReaperLease;
  readonly events: QuotaEvents;
};

function leaseName(domain: string): string {
  return `reaper/${domain}`;
}

/**
 * Finds the domains that have pools, and reaps those whose lease this process holds. A failing domain does not delay
 * the others.
 */
export async function runReapers(ports: LoopPorts, signal: AbortSignal): Promise<void> {
  const { clock, domains, events } = ports;
  const reapers = new Map<QuotaDomain, Reaper>();
  const reapDomain = async (domain: QuotaDomain) => {
    const reaper = getOrCreate(reapers, domain, () => new Reaper(domain, ports.lease(leaseName(domain.name))));
    await reaper.runOnce();
  };
  let discoveredAtMs = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    const nowMs = clock.monotonicMs();
    if (nowMs - discoveredAtMs >= DISCOVER_MS) {
      discoveredAtMs = nowMs;
      await domains.discover().catch((error: unknown) => events.loopFailed({ loop: "quota domains", error }));
    }
    await onEachDomain(ports, "reaper", reapDomain);
    await clock.sleep(TICK_MS, signal);
  }
}

/** Reports to every domain that this process serves renewals. Without any report, no lease of the domain runs. */
export async function runReports(
  ports: Pick<LoopPorts, "clock" | "domains" | "events">,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await onEachDomain(ports, "quota reports", report);
    await ports.clock.sleep(TICK_MS, signal);
  }
}

async function report(domain: QuotaDomain): Promise<void> {
  const epoch = domain.epochs.current;
  // A closed domain has no running lease, and opens without being asked.
  if (epoch === null) return;
  if ((await domain.counters.report(epoch)) === "closed") domain.epochs.countersClosed(epoch);
}

async function onEachDomain(
  { domains, events }: Pick<LoopPorts, "domains" | "events">,
  loop: string,
  run: (domain: QuotaDomain) => Promise<void>,
): Promise<void> {
  const failed = (error: unknown) => events.loopFailed({ loop, error });
  await Promise.all(domains.ready().map((domain) => run(domain).catch(failed)));
}
