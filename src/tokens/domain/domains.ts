import type { Counters } from "../../core/quota/counters.ts";
import type { QuotaEvents } from "../../core/quota/events.ts";
import { type LedgerOf, redisDomain } from "../../core/quota/ledger.ts";
import type { RegisteredDomain } from "../../core/quota/pools.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { QuotaStore } from "../ports.ts";
import { createDomain, type QuotaDomain } from "./domain.ts";
import { counterLedger } from "./domain-ledger.ts";

export type DomainsPorts = {
  readonly clock: Clock;
  readonly random: () => number;
  readonly ledgerOf: LedgerOf;
  readonly store: Pick<QuotaStore, "listDomains">;
  /** Makes the counters of a domain, not opened yet. Called once for each domain, and again only after it threw. */
  readonly countersOf: (domain: string) => Promise<Counters>;
  readonly events: QuotaEvents;
};

/** The quota domains of this process. Each is made at its first use and stays until the end. */
export class Domains {
  readonly #ports: DomainsPorts;
  readonly #domains = new Map<string, Promise<QuotaDomain>>();
  readonly #ready: QuotaDomain[] = [];

  constructor(ports: DomainsPorts) {
    this.#ports = ports;
  }

  /** Throws if the domain's counters cannot be made. The next call tries again. */
  domain(of: RegisteredDomain): Promise<QuotaDomain> {
    const name = of.durability === "REDIS" ? redisDomain(of.domain) : of.domain;
    const known = this.#domains.get(name);
    if (known !== undefined) return known;
    const made = this.#make(name, of);
    this.#domains.set(name, made);
    made.catch(() => this.#domains.delete(name));
    return made;
  }

  /** The domains whose counters have been made. */
  ready(): readonly QuotaDomain[] {
    return this.#ready;
  }

  /** Starts to use every domain that has pools, also those that other processes registered. */
  async discover(): Promise<void> {
    for (const registered of await this.#ports.store.listDomains()) await this.domain(registered);
  }

  async close(): Promise<void> {
    await Promise.all(this.#ready.map((domain) => domain.close()));
  }

  async #make(name: string, { durability }: RegisteredDomain): Promise<QuotaDomain> {
    const { ledgerOf, clock, countersOf } = this.#ports;
    const counters = await countersOf(name);
    const recorded = ledgerOf(name, clock);
    const ledger = durability === "REDIS" ? counterLedger(name, { ledger: recorded, counters }) : recorded;
    const domain = createDomain({ name, counters, ledger }, this.#ports);
    this.#ready.push(domain);
    return domain;
  }
}
