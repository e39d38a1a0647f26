import type { QuotaEvents } from "../core/quota/events.ts";
import type { RegisteredDomain } from "../core/quota/pools.ts";
import type { QuotaDomain } from "./domain/domain.ts";
import type { Domains } from "./domain/domains.ts";

/** A change waits this long for its domain, which may be new and about to open. */
const OPEN_MS = 500;

/** Queues, and the pools that clusters and queues name, are counted in this domain. */
export const QUEUES_DOMAIN: RegisteredDomain = { domain: "default", durability: "LEDGER" };

/** Gives the counters the limits that the ledger enforces. */
export async function pushLimits(domain: QuotaDomain, epoch: number): Promise<void> {
  const limits = await domain.ledger.readLimits();
  if ((await domain.counters.setLimits(epoch, limits)) === "closed") domain.epochs.countersClosed(epoch);
}

/**
 * Follows up each change of limits in this process: the counters get the new limits, then the planner wakes, since the
 * change may let a gang in.
 */
export class LimitChanges {
  readonly #domains: Domains;
  readonly #events: Pick<QuotaEvents, "loopFailed">;
  readonly #wakePlanner: () => void;

  constructor(of: {
    readonly domains: Domains;
    readonly events: Pick<QuotaEvents, "loopFailed">;
    readonly wakePlanner: () => void;
  }) {
    this.#domains = of.domains;
    this.#events = of.events;
    this.#wakePlanner = of.wakePlanner;
  }

  /**
   * Call it once after each committed change, before the answer: the next request of the same client then meets the new
   * limits. Never throws: if the counters are away, the reaper pushes the limits a second later.
   */
  async changed(registered: RegisteredDomain): Promise<void> {
    try {
      const domain = await this.#domains.domain(registered);
      await pushLimits(domain, await domain.epochs.openEpoch(OPEN_MS));
    } catch (error) {
      this.#events.loopFailed({ loop: "quota limits", error });
    }
    this.#wakePlanner();
  }
}
