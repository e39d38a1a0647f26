import type { AllocationRef, Counters } from "../../core/quota/counters.ts";
import type { QuotaEvents } from "../../core/quota/events.ts";
import type { DomainEpochs } from "./epochs.ts";

/** Allocations of one call. */
const GROUP_MAX = 500;
/** Allocations that wait at most. The reaper later finds the dropped ones in the ledger. */
const WAITING_MAX = 20_000;

export type ConfirmationPorts = {
  readonly counters: Pick<Counters, "confirm">;
  readonly epochs: Pick<DomainEpochs, "countersClosed">;
  readonly events: Pick<QuotaEvents, "loopFailed">;
};

/**
 * Tells the counters in the background which grants the ledger has. No answer waits for it, and the reaper repairs
 * confirmations that get lost.
 */
export class Confirmations {
  readonly #ports: ConfirmationPorts;
  #epoch = 0;
  #waiting: AllocationRef[] = [];
  #running: Promise<void> | null = null;

  constructor(ports: ConfirmationPorts) {
    this.#ports = ports;
  }

  add(epoch: number, refs: readonly AllocationRef[]): void {
    // Counters of a later epoch were loaded from the ledger: they hold nothing unconfirmed of an earlier one.
    if (epoch < this.#epoch) return;
    if (epoch > this.#epoch) this.#waiting = [];
    this.#epoch = epoch;
    if (this.#waiting.length + refs.length > WAITING_MAX) return;
    this.#waiting.push(...refs);
    this.#running ??= this.#run();
  }

  /** Resolves when every added allocation has been sent. */
  async idle(): Promise<void> {
    while (this.#running !== null) await this.#running;
  }

  async #run(): Promise<void> {
    // Allocations of one turn of the event loop go together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const epoch = this.#epoch;
      await this.#send(epoch, this.#waiting.splice(0, GROUP_MAX));
    }
    this.#running = null;
  }

  async #send(epoch: number, refs: readonly AllocationRef[]): Promise<void> {
    const { counters, epochs, events } = this.#ports;
    try {
      if ((await counters.confirm(epoch, refs)) === "closed") epochs.countersClosed(epoch);
    } catch (error) {
      events.loopFailed({ loop: "quota confirmations", error });
    }
  }
}
