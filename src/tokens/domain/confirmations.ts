import { tokenKey } from "../../core/quota/allocations.ts";
import type { AllocationRef, Counters } from "../../core/quota/counters.ts";
import type { QuotaEvents } from "../../core/quota/events.ts";
import type { Ledger } from "../../core/quota/ledger.ts";
import type { Clock } from "../../runtime/clock.ts";
import { BackgroundSends } from "./background-sends.ts";
import type { DomainEpochs } from "./epochs.ts";

/** Most tokens of short tasks are released within this time. */
const LINGER_MS = 20;

export type ConfirmationPorts = {
  readonly clock: Pick<Clock, "sleep">;
  readonly counters: Pick<Counters, "confirm">;
  readonly ledger: Pick<Ledger, "confirmReleases" | "releaseFrees">;
  readonly epochs: Pick<DomainEpochs, "countersClosed">;
  readonly events: Pick<QuotaEvents, "loopFailed">;
};

/**
 * Tells the counters in the background which grants the ledger has, and the ledger which releases the counters have
 * freed. No answer waits for it, and the reaper repairs confirmations that get lost.
 */
export class Confirmations {
  readonly #ports: ConfirmationPorts;
  readonly #grants: BackgroundSends<AllocationRef>;
  readonly #releases: BackgroundSends<AllocationRef>;
  #epoch = 0;

  constructor(ports: ConfirmationPorts) {
    this.#ports = ports;
    const { clock, ledger } = ports;
    // Until the counters know that the ledger has a grant, a release that does not reach them makes renewals wait for
    // the reaper. A ledger whose releases free the tokens has no such releases.
    const lingerMs = ledger.releaseFrees ? LINGER_MS : 0;
    this.#grants = new BackgroundSends({ clock, lingerMs, send: (refs) => this.#confirmGrants(refs) });
    this.#releases = new BackgroundSends({ clock, lingerMs: LINGER_MS, send: (refs) => this.#confirmReleases(refs) });
  }

  /** The ledger has these grants. */
  granted(epoch: number, refs: readonly AllocationRef[]): void {
    // Counters of a later epoch were loaded from the ledger: they hold nothing unconfirmed of an earlier one.
    if (epoch < this.#epoch) return;
    if (epoch > this.#epoch) this.#grants.clear();
    this.#epoch = epoch;
    for (const ref of refs) this.#grants.add(keyOf(ref), ref);
  }

  /** The counters have freed these allocations, so their grants need no confirmation. */
  freed(refs: readonly AllocationRef[]): void {
    for (const ref of refs) {
      this.#grants.drop(keyOf(ref));
      this.#releases.add(keyOf(ref), ref);
    }
  }

  /** Sends everything. Resolves when nothing is on its way any more. */
  async close(): Promise<void> {
    await Promise.all([this.#grants.close(), this.#releases.close()]);
  }

  async #confirmGrants(refs: readonly AllocationRef[]): Promise<void> {
    const { counters, epochs, events } = this.#ports;
    const epoch = this.#epoch;
    try {
      if ((await counters.confirm(epoch, refs)) === "closed") epochs.countersClosed(epoch);
    } catch (error) {
      events.loopFailed({ loop: "quota confirmations", error });
    }
  }

  async #confirmReleases(refs: readonly AllocationRef[]): Promise<void> {
    try {
      await this.#ports.ledger.confirmReleases(refs);
    } catch (error) {
      this.#ports.events.loopFailed({ loop: "quota release", error });
    }
  }
}

function keyOf(ref: AllocationRef): string {
  return `${ref.fence} ${tokenKey(ref)}`;
}
