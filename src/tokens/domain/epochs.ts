/**
 * Serves every user of tokens after a fault: counters that were lost, flushed or exchanged are rebuilt from the ledger
 * without an operator.
 */
import type { Counters } from "../../core/quota/counters.ts";
import type { QuotaEvents } from "../../core/quota/events.ts";
import type { Ledger } from "../../core/quota/ledger.ts";
import type { Clock } from "../../runtime/clock.ts";
import { UnavailableError } from "../../runtime/unavailable-error.ts";

/** Pauses between attempts to open. Chance shortens each by up to half, so that processes do not try in step. */
const PAUSE_MS_MIN = 20;
const PAUSE_MS_MAX = 2_000;
/**
 * How long this process leaves the loading of counters to another one that has raised the epoch. The time doubles
 * while the loads of several processes collide.
 */
const PATIENCE_MS_MIN = 250;
const PATIENCE_MS_MAX = 60_000;

/**
 * How long calls wait at least for a domain that was never open: the first calls about a new pool find its domain
 * opening, and no store is away. Past it, a store is probably away.
 */
const FIRST_OPENING_MS = 2_000;

/** Why an epoch is lost if its counters were flushed, reloaded by another process, or exchanged. */
export const NOT_OPENED = "the counters are not those that were opened";

export type EpochPorts = {
  readonly clock: Clock;
  /** Evenly spread, from 0 to below 1. */
  readonly random: () => number;
  readonly events: Pick<QuotaEvents, "domainClosed" | "domainOpened" | "domainFailed">;
};

/**
 * The epochs of one quota domain as this process sees them: under one epoch at a time the domain is open.
 *
 * ```
 *   closed ──▶ opening: if the ledger's epoch is newer and its counters are open ──▶ open(epoch)
 *     ▲          └── otherwise raise the epoch and load the counters ──────────────┘     │
 *     └────────────── lost(epoch): counters and ledger were found to differ ─────────────┘
 * ```
 *
 * The domain opens without being asked, one attempt after the other, with pauses. An epoch that was lost is never
 * trusted again.
 */
export class DomainEpochs {
  readonly #name: string;
  readonly #counters: Pick<Counters, "open" | "confirm">;
  readonly #ledger: Pick<Ledger, "readDomain" | "raiseEpoch">;
  readonly #ports: EpochPorts;
  readonly #stop = new AbortController();
  #current: number | null = null;
  /** The last epoch that was lost. Null: none was open yet. */
  #lost: number | null = null;
  #why = "it was not opened yet";
  #opening: Promise<void> | null = null;

  constructor(
    of: {
      readonly name: string;
      readonly counters: Pick<Counters, "open" | "confirm">;
      readonly ledger: Pick<Ledger, "readDomain" | "raiseEpoch">;
    },
    ports: EpochPorts,
  ) {
    this.#name = of.name;
    this.#counters = of.counters;
    this.#ledger = of.ledger;
    this.#ports = ports;
  }

  /** The epoch under which the domain is open. Null: it is closed. */
  get current(): number | null {
    return this.#current;
  }

  /** Returns the epoch and waits for it up to `patienceMs`. Throws `UnavailableError` if the domain is still closed. */
  async openEpoch(patienceMs: number, signal?: AbortSignal): Promise<number> {
    if (this.#current !== null) return this.#current;
    const opening = this.#open();
    const waitMs = this.#lost === null ? Math.max(patienceMs, FIRST_OPENING_MS) : patienceMs;
    if (waitMs > 0) await this.#within(opening, waitMs, signal);
    // The domain may have opened meanwhile.
    const epoch = this.current;
    if (epoch === null) throw this.#unavailable();
    return epoch;
  }

  /** Stops trusting an epoch, and opens the domain under a newer one. Does nothing if the epoch is not the current. */
  lost(epoch: number, why: string): void {
    if (this.#current !== epoch) return;
    this.#current = null;
    this.#lost = epoch;
    this.#why = why;
    this.#ports.events.domainClosed({ domain: this.#name, epoch, why });
    void this.#open();
  }

  /** Stops trusting an epoch because the counters answered that they are closed for it. */
  countersClosed(epoch: number): void {
    this.lost(epoch, NOT_OPENED);
  }

  /** Starts to open the domain, unless it is open or opening. */
  startOpening(): void {
    if (this.#current === null) void this.#open();
  }

  /** Ends all attempts to open. Resolves when none runs any more. */
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
          this.#current = opened.epoch;
          // If this epoch is lost, another opening starts.
          this.#opening = null;
          const tookMs = clock.monotonicMs() - startedMs;
          events.domainOpened({ domain: this.#name, ...opened, why: this.#why, tookMs });
          return;
        }
      } catch (error) {
        events.domainFailed({ domain: this.#name, error });
      }
      await clock.sleep(pauseMs * (1 - random() / 2), this.#stop.signal);
    }
  }

  /** Returns null if another process is about to open the domain, or was faster. */
  async #tryOnce(patience: Patience): Promise<{ readonly epoch: number; readonly rebuilt: boolean } | null> {
    const present = (await this.#ledger.readDomain())?.epoch ?? null;
    const isNewer = present !== null && (this.#lost === null || present > this.#lost);
    if (isNewer && (await this.#isOpen(present))) return { epoch: present, rebuilt: false };
    // The process that raised the epoch after this one lost it now loads the counters.
    if (isNewer && this.#lost !== null && !patience.isOverFor(present)) return null;
    const raised = await this.#ledger.raiseEpoch(present);
    if (raised.kind === "moved") {
      this.#lost ??= present;
      return null;
    }
    await this.#counters.open(raised.epoch, raised);
    return (await this.#isOpen(raised.epoch)) ? { epoch: raised.epoch, rebuilt: true } : null;
  }

  async #isOpen(epoch: number): Promise<boolean> {
    return (await this.#counters.confirm(epoch, [])) === "confirmed";
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
    return new UnavailableError(`the quota domain "${this.#name}" is being rebuilt: ${this.#why}`);
  }
}

/** How long this process leaves an epoch to the process that raised it. */
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
