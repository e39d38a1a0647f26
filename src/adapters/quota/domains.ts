import type { Counters } from "../../core/quota/counters.ts";
import { redisDomain } from "../../core/quota/ledger.ts";
import type { Clock } from "../../runtime/clock.ts";
import { createDesk, type Desk } from "./desk.ts";
import { counterLedger, ledgerOf } from "./domain-ledger.ts";
import type { PoolSettings, QuotaEvents, QuotaLedger, QuotaStore } from "./ports.ts";

/** Where a pool is counted. */
export type Whereabouts = Pick<PoolSettings, "domain" | "durability">;

export type DomainsPorts = {
  readonly clock: Clock;
  readonly random: () => number;
  readonly ledger: QuotaLedger;
  readonly store: Pick<QuotaStore, "listDomains">;
  /** The counters of a domain, not opened yet. Called once for each, and again only if it threw. */
  readonly countersOf: (domain: string) => Promise<Counters>;
  readonly events: QuotaEvents;
};

/** The quota domains as this process uses them: each once, from its first use until the end. */
export class Domains {
  readonly #ports: DomainsPorts;
  readonly #desks = new Map<string, Promise<Desk>>();
  readonly #ready: Desk[] = [];

  constructor(ports: DomainsPorts) {
    this.#ports = ports;
  }

  /** Throws what its counters throw where they cannot be had; the next call tries again. */
  desk(where: Whereabouts): Promise<Desk> {
    const name = where.durability === "REDIS" ? redisDomain(where.domain) : where.domain;
    const known = this.#desks.get(name);
    if (known !== undefined) return known;
    const made = this.#make(name, where);
    this.#desks.set(name, made);
    made.catch(() => this.#desks.delete(name));
    return made;
  }

  /** Those whose counters are there. */
  ready(): readonly Desk[] {
    return this.#ready;
  }

  /** Uses every domain that has pools from now on, also those that other processes brought. */
  async discover(): Promise<void> {
    for (const where of await this.#ports.store.listDomains()) await this.desk(where);
  }

  async close(): Promise<void> {
    await Promise.all(this.#ready.map((desk) => desk.close()));
  }

  async #make(name: string, where: Whereabouts): Promise<Desk> {
    const { ledger, clock, countersOf } = this.#ports;
    const counters = await countersOf(name);
    const own =
      where.durability === "REDIS" ? counterLedger(name, { ledger, counters }) : ledgerOf(name, ledger, clock);
    const desk = createDesk({ name, counters, ledger: own }, this.#ports);
    this.#ready.push(desk);
    return desk;
  }
}
