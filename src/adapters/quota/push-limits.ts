import type { Desk } from "./desk.ts";
import type { Domains, Whereabouts } from "./domains.ts";
import type { QuotaEvents } from "./ports.ts";

/** A domain that was just made opens meanwhile. */
const OPEN_MS = 500;

/** Gives the counters the limits that the ledger enforces. */
export async function pushLimits(desk: Desk, epoch: number): Promise<void> {
  const limits = await desk.ledger.readLimits();
  if ((await desk.counters.setLimits(epoch, limits)) === "closed") desk.domain.notOpened(epoch);
}

/** Gives the counters the limits that the ledger has by now. Never throws: the reaper tells them too, which costs a second. */
export async function tellLimits(
  { domains, events }: { readonly domains: Domains; readonly events: Pick<QuotaEvents, "loopFailed"> },
  where: Whereabouts,
): Promise<void> {
  try {
    const desk = await domains.desk(where);
    await pushLimits(desk, await desk.domain.openEpoch(OPEN_MS));
  } catch (error) {
    events.loopFailed({ loop: "quota limits", error });
  }
}
