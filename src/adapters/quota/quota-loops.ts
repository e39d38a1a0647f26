import { TICK_MS } from "../../core/quota/lease-clock.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Desk } from "./desk.ts";
import type { Domains } from "./domains.ts";
import type { QuotaEvents } from "./ports.ts";
import { Reaper } from "./reaper.ts";

/** Domains that other processes brought are found after so long at most. */
const DISCOVER_MS = 5_000;

type Lease = { readonly epoch: () => number | null };

export type LoopPorts = {
  readonly clock: Clock;
  readonly domains: Domains;
  /** The lease of a domain's reaper, by its name; asked for once for each. */
  readonly lease: (name: string) => Lease;
  readonly events: QuotaEvents;
};

function reaperLease(domain: string): string {
  return `reaper/${domain}`;
}

/** Finds the domains that have pools and reaps those whose lease this process holds. A domain that fails holds up no other. */
export async function runReapers(ports: LoopPorts, signal: AbortSignal): Promise<void> {
  const { clock, domains, events } = ports;
  const reapers = new Map<Desk, Reaper>();
  const reap = async (desk: Desk) => {
    const reaper = reapers.get(desk) ?? new Reaper(desk, ports.lease(reaperLease(desk.domain.name)));
    reapers.set(desk, reaper);
    await reaper.runOnce();
  };
  let discoveredAtMs = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    const nowMs = clock.monotonicMs();
    if (nowMs - discoveredAtMs >= DISCOVER_MS) {
      discoveredAtMs = nowMs;
      await domains.discover().catch((error: unknown) => events.loopFailed({ loop: "quota domains", error }));
    }
    await onEach(ports, "reaper", reap);
    await clock.sleep(TICK_MS, signal);
  }
}

/** Says of every domain that this process serves renewals: while nobody does, no lease runs. */
export async function runReports(
  ports: Pick<LoopPorts, "clock" | "domains" | "events">,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await onEach(ports, "quota reports", report);
    await ports.clock.sleep(TICK_MS, signal);
  }
}

async function report(desk: Desk): Promise<void> {
  const { epoch } = desk.domain;
  // A domain that is closed has no lease that could run, and opens by itself.
  if (epoch === null) return;
  if ((await desk.counters.report(epoch)) === "closed") desk.domain.notOpened(epoch);
}

async function onEach(
  { domains, events }: Pick<LoopPorts, "domains" | "events">,
  loop: string,
  run: (desk: Desk) => Promise<void>,
): Promise<void> {
  const failed = (error: unknown) => events.loopFailed({ loop, error });
  await Promise.all(domains.ready().map((desk) => run(desk).catch(failed)));
}
