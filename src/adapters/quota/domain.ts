import type { Counters } from "../../core/quota/counters.ts";
import type { Clock } from "../../runtime/clock.ts";
import { UnavailableError } from "../../runtime/unavailable-error.ts";
import type { DomainLedger, QuotaEvents } from "./ports.ts";

/** Pauses between attempts to open; each is up to half shorter by chance, so that processes do not go in step. */
const PAUSE_MS_MIN = 20;
const PAUSE_MS_MAX = 2_000;
/** How long another process that has raised the epoch may load counters before this one does; it doubles while loads get in each other's way. */
const PATIENCE_MS_MIN = 250;
const PATIENCE_MS_MAX = 60_000;

/** Why an epoch is lost whose counters were flushed, reloaded by another or exchanged. */
export const NOT_OPENED = "the counters are not those that were opened";

export type DomainPorts = {
  readonly clock: Clock;
  /** Evenly spread, 0 to below 1. */
  readonly random: () => number;
  readonly events: Pick<QuotaEvents, "domainClosed" | "domainOpened" | "domainFailed">;
};

/**
 * One quota domain as this process sees it: the epoch under which its counters are open.
 *
 * ```
 *   closed ──▶ opening: the ledger's epoch is newer and open ──▶ open(epoch)
 *     ▲          └────── else raise it, load the counters ───────┘    │
 *     └──── lost(epoch): counters or ledger say that they differ ─────┘
 * ```
 *
 * It opens by itself, again and again with pauses, one attempt at a time. An epoch that was lost is never trusted again.
 */
export class QuotaDomain {
  readonly name: string;
  readonly counters: Counters;
  readonly #ledger: Pick<DomainLedger, "readEpoch" | "raiseEpoch">;
  readonly #ports: DomainPorts;
  readonly #stop = new AbortController();
  #epoch: number | null = null;
  /** The last epoch that was lost; null before the first was open. */
  #lost: number | null = null;
  #why = "it was not opened yet";
  #opening: Promise<void> | null = null;

  constructor(
    of: {
      readonly name: string;
      readonly counters: Counters;
      readonly ledger: Pick<DomainLedger, "readEpoch" | "raiseEpoch">;
    },
    ports: DomainPorts,
  ) {
    this.name = of.name;
    this.counters = of.counters;
    this.#ledger = of.ledger;
    this.#ports = ports;
  }

  /** The epoch that it is open under; null while it is not. */
  get epoch(): number | null {
    return this.#epoch;
  }

  /** The epoch, waiting for it at most `patienceMs`; throws `UnavailableError` while the domain is closed. */
  async openEpoch(patienceMs: number, signal?: AbortSignal): Promise<number> {
    if (this.#epoch !== null) return this.#epoch;
    const opening = this.#open();
    if (patienceMs > 0) await this.#within(opening, patienceMs, signal);
    // Read anew: it may be open by now.
    const epoch = this.epoch;
    if (epoch === null) throw this.#unavailable();
    return epoch;
  }

  /** Trusts an epoch no more; nothing happens if that was known. It opens again under a newer one. */
  lost(epoch: number, why: string): void {
    if (this.#epoch !== epoch) return;
    this.#epoch = null;
    this.#lost = epoch;
    this.#why = why;
    this.#ports.events.domainClosed({ domain: this.name, epoch, why });
    void this.#open();
  }

  /** The counters answered that they are closed for this epoch. */
  notOpened(epoch: number): void {
    this.lost(epoch, NOT_OPENED);
  }

  /** Begins to open, unless it is open or being opened. */
  open(): void {
    if (this.#epoch === null) void this.#open();
  }

  /** Opens no more; resolves once nothing is under way. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#opening;
  }

  #open(): Promise<void> {
    this.#opening ??= this.#keepTrying();
    return this.#opening;
  }

  async #keepTrying(): Promise<void> {
    const { clock, random, events } = this.#ports;
    const startedMs = clock.monotonicMs();
    const patience = new Patience(clock, random);
    for (let pauseMs = PAUSE_MS_MIN; !this.#stop.signal.aborted; pauseMs = Math.min(PAUSE_MS_MAX, 2 * pauseMs)) {
      try {
        const opened = await this.#tryOnce(patience);
        if (opened !== null) {
          this.#epoch = opened.epoch;
          // From here on it may be lost again, which is another opening.
          this.#opening = null;
          const tookMs = clock.monotonicMs() - startedMs;
          events.domainOpened({ domain: this.name, ...opened, why: this.#why, tookMs });
          return;
        }
      } catch (error) {
        events.domainFailed({ domain: this.name, error });
      }
      await clock.sleep(pauseMs * (1 - random() / 2), this.#stop.signal);
    }
  }

  /** Null where another process is about to open it, or was faster. */
  async #tryOnce(patience: Patience): Promise<{ readonly epoch: number; readonly rebuilt: boolean } | null> {
    const present = (await this.#ledger.readEpoch())?.epoch ?? null;
    const isNewer = present !== null && (this.#lost === null || present > this.#lost);
    if (isNewer && (await this.#isOpen(present))) return { epoch: present, rebuilt: false };
    // Whoever has raised it since this process lost it loads the counters now.
    if (isNewer && this.#lost !== null && !patience.isOverFor(present)) return null;
    const raised = await this.#ledger.raiseEpoch(present);
    if (raised.kind === "moved") {
      this.#lost ??= present;
      return null;
    }
    await this.counters.open(raised.epoch, raised);
    return (await this.#isOpen(raised.epoch)) ? { epoch: raised.epoch, rebuilt: true } : null;
  }

  async #isOpen(epoch: number): Promise<boolean> {
    return (await this.counters.confirm(epoch, [])) === "confirmed";
  }

  async #within(opening: Promise<void>, patienceMs: number, signal?: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const end = () => stop.abort();
    signal?.addEventListener("abort", end, { once: true });
    if (signal?.aborted) end();
    await Promise.race([opening, this.#ports.clock.sleep(patienceMs, stop.signal)]);
    signal?.removeEventListener("abort", end);
    end();
  }

  #unavailable(): UnavailableError {
    return new UnavailableError(`the quota domain "${this.name}" is being rebuilt: ${this.#why}`);
  }
}

/** How long to leave an epoch to whoever raised it. */
class Patience {
  readonly #clock: Clock;
  readonly #random: () => number;
  #patienceMs = PATIENCE_MS_MIN;
  #epoch: number | null = null;
  #untilMs = 0;

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  isOverFor(epoch: number): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (this.#epoch === epoch) return nowMs >= this.#untilMs;
    this.#epoch = epoch;
    this.#untilMs = nowMs + this.#patienceMs * (1 - this.#random() / 2);
    this.#patienceMs = Math.min(PATIENCE_MS_MAX, 2 * this.#patienceMs);
    return false;
  }
}
