import type { LineRef } from "../../core/quota/counters.ts";
import type { QuotaDomain } from "./domain.ts";
import type { QuotaEvents } from "./ports.ts";

/** So many go in one call. */
const GROUP_MAX = 500;
/** So many wait at most; what is dropped beyond that the reaper finds in the ledger. */
const WAITING_MAX = 20_000;

/** Tells the counters what the ledger has, in the background: no answer waits for it, and what is lost of it the reaper makes up for. */
export class Confirmations {
  readonly #domain: QuotaDomain;
  readonly #events: Pick<QuotaEvents, "loopFailed">;
  #epoch = 0;
  #waiting: LineRef[] = [];
  #running: Promise<void> | null = null;

  constructor(domain: QuotaDomain, events: Pick<QuotaEvents, "loopFailed">) {
    this.#domain = domain;
    this.#events = events;
  }

  add(epoch: number, refs: readonly LineRef[]): void {
    // Counters of a later epoch were loaded from the ledger: nothing of an earlier one is unconfirmed there.
    if (epoch < this.#epoch) return;
    if (epoch > this.#epoch) this.#waiting = [];
    this.#epoch = epoch;
    if (this.#waiting.length + refs.length > WAITING_MAX) return;
    this.#waiting.push(...refs);
    this.#running ??= this.#run();
  }

  /** Resolves once what was added has been told. */
  async idle(): Promise<void> {
    while (this.#running !== null) await this.#running;
  }

  async #run(): Promise<void> {
    // Those of one turn go together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const epoch = this.#epoch;
      await this.#tell(epoch, this.#waiting.splice(0, GROUP_MAX));
    }
    this.#running = null;
  }

  async #tell(epoch: number, refs: readonly LineRef[]): Promise<void> {
    try {
      const told = await this.#domain.counters.confirm(epoch, refs);
      if (told === "closed") this.#domain.notOpened(epoch);
    } catch (error) {
      this.#events.loopFailed({ loop: "quota confirmations", error });
    }
  }
}
