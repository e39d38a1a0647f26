import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { runReapers, runReports } from "../../src/tokens/reaper/loops.ts";
import type { TestStore } from "../store/db.ts";
import { ledgerAt } from "../support/ledger-at.ts";
import { LosableCounters } from "../support/losable-counters.ts";
import { startManager, type TestManager } from "./manager.ts";
import { type ProcessClock, VirtualTime } from "./virtual-time.ts";

export type VirtualServer = TestManager & {
  readonly clock: ProcessClock;
  readonly number: number;
  /** A stalled process does nothing until it is released. */
  readonly stall: (isStalled: boolean) => void;
  readonly stop: () => Promise<void>;
};

/** Processes that share a ledger, counters and virtual time, with the loops that run in production. */
export class VirtualServers {
  readonly time = new VirtualTime();
  readonly counters = new LosableCounters();
  readonly store: TestStore;
  /** True: every call of the ledger fails. */
  isLedgerAway = false;
  /** The number of the process that holds the reapers' leases. */
  reaping = 0;
  readonly #servers: VirtualServer[] = [];

  constructor(store: TestStore) {
    this.store = store;
  }

  /** Starts a process. A process that answers callers also reports it. Every process reaps if it holds the lease. */
  async start({ answers }: { readonly answers: boolean }): Promise<VirtualServer> {
    const number = this.#servers.length;
    const clock = this.time.clock();
    const countersOf = async () => this.counters.port;
    const at = startManager({ ledgerOf: this.#ledgerOf, store: this.store.pools, clock, countersOf });
    await this.time.during((await at.domain()).epochs.openEpoch(60_000));
    const { domains, events } = at;
    const lease = () => ({ epoch: () => (this.reaping === number ? 1 : null) });
    const reaper = await this.time.run((own, signal) => runReapers({ clock: own, domains, events, lease }, signal));
    const reports = answers
      ? await this.time.run((own, signal) => runReports({ clock: own, domains, events }, signal))
      : null;
    const server: VirtualServer = {
      ...at,
      clock,
      number,
      stall: (isStalled) => {
        for (const one of [clock, reaper.clock, reports?.clock]) if (one) one.isStalled = isStalled;
      },
      stop: async () => {
        await Promise.all([reaper.stop(), reports?.stop()]);
        await this.time.during(at.close());
      },
    };
    this.#servers.push(server);
    return server;
  }

  /** Returns true if the ledger holds a token. */
  async holds(token: string, pool: string): Promise<boolean> {
    return (await ledgerAt(this.store).findLive([{ pool, token }])).length > 0;
  }

  async stop(): Promise<void> {
    this.isLedgerAway = false;
    for (const server of this.#servers) await server.stop();
  }

  /** The store's ledgers, which fail while the ledger is away. */
  readonly #ledgerOf: TestStore["ledgerOf"] = (domain, clock) => {
    const behind = Object.entries(this.store.ledgerOf(domain, clock)).map(([name, call]) => [
      name,
      async (...given: readonly unknown[]) => {
        if (this.isLedgerAway) throw new UnavailableError("the ledger is unavailable");
        return (call as (...given: readonly unknown[]) => Promise<unknown>)(...given);
      },
    ]);
    return Object.fromEntries(behind);
  };
}
