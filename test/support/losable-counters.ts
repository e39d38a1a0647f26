import { inProcessCounters } from "../../src/adapters/counters/in-process/in-process-counters.ts";
import type { Counters } from "../../src/core/quota/counters.ts";

/** Counters that several processes share. After a loss they are empty and closed. */
export class LosableCounters {
  #counters = inProcessCounters();
  readonly port: Counters = {
    open: (...given) => this.#counters.open(...given),
    grant: (...given) => this.#counters.grant(...given),
    grantAll: (...given) => this.#counters.grantAll(...given),
    free: (...given) => this.#counters.free(...given),
    giveBack: (...given) => this.#counters.giveBack(...given),
    shrink: (...given) => this.#counters.shrink(...given),
    turnOver: (...given) => this.#counters.turnOver(...given),
    confirm: (...given) => this.#counters.confirm(...given),
    renew: (...given) => this.#counters.renew(...given),
    stand: (...given) => this.#counters.stand(...given),
    leave: (...given) => this.#counters.leave(...given),
    tick: (...given) => this.#counters.tick(...given),
    report: (...given) => this.#counters.report(...given),
    setLimits: (...given) => this.#counters.setLimits(...given),
    used: () => this.#counters.used(),
    moment: (...given) => this.#counters.moment(...given),
    held: (...given) => this.#counters.held(...given),
    find: (...given) => this.#counters.find(...given),
    waiting: () => this.#counters.waiting(),
    onOffer: (listener) => this.#counters.onOffer(listener),
  };

  lose(): void {
    this.#counters = inProcessCounters();
  }
}
