/** Machines and a database whose clocks a test steps, and puts to sleep. */
import {
  type ClockEvents,
  createDecisionClock,
  type DecisionClock,
  type MachineClocks,
} from "../../src/runtime/decision-clock.ts";
import type { SharedTime } from "../../src/runtime/decision-time.ts";
import type { MemberStore } from "../../src/runtime/member.ts";

export const SILENT: ClockEvents = { clockStepped: () => {}, clockJumped: () => {}, clockMeasured: () => {} };

/** The time that really passes, and the database's clock, which may be wrong. */
export class VirtualClocks {
  trueMs = 1_750_000_000_000;
  /** The database's clock minus the true time. */
  databaseAheadMs = 0;
  readonly databaseMs = () => Math.round(this.trueMs + this.databaseAheadMs);

  /** Reads the virtual database's clock in place of the real one's. */
  read<Read extends SharedTime>(read: Read): Read {
    return { ...read, databaseMs: this.databaseMs() };
  }

  /** A store of members whose database has the virtual clock. */
  memberStore<Store extends MemberStore>(store: Store): Store {
    return {
      ...store,
      renew: async (name: string) => {
        const renewal = await store.renew(name);
        return { ...renewal, time: this.read(renewal.time) };
      },
    };
  }
}

/** A machine whose clocks begin anywhere. */
export class VirtualMachine {
  readonly #clocks: VirtualClocks;
  readonly #bootMs: number;
  #sleptMs = 0;
  /** The clock on the wall minus the true time. */
  wallAheadMs = 0;
  /** False: its monotonic clock stands still in sleep, and no other clock tells how long, as in a paused VM. */
  tellsSleep = true;

  constructor(clocks: VirtualClocks, upMs = 0) {
    this.#clocks = clocks;
    this.#bootMs = clocks.trueMs - upMs;
  }

  /** The machine has just slept for so long. The test moves the true time itself. */
  slept(ms: number): void {
    this.#sleptMs += ms;
  }

  readonly monotonicMs = () => this.#clocks.trueMs - this.#bootMs - this.#sleptMs;

  readonly clocks: MachineClocks = {
    monotonicMs: this.monotonicMs,
    uptimeMs: () => (this.tellsSleep ? this.#clocks.trueMs - this.#bootMs : this.monotonicMs()),
    wallMs: () => this.#clocks.trueMs + this.wallAheadMs,
    sleep: async () => {},
  };

  /** The clock of a process that starts on this machine. */
  start(read: SharedTime, events: ClockEvents = SILENT): DecisionClock {
    return createDecisionClock({ read: this.#clocks.read(read), atMs: this.monotonicMs() }, this.clocks, events);
  }
}
