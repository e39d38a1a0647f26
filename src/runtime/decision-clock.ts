/** Reads the clocks of this process for `decision-time.ts`, which says how they make decision time. */
import { uptime } from "node:os";
import { invariant } from "./assert.ts";
import type { Clock } from "./clock.ts";
import { type DecisionTime, measure, type SharedTime, STEP_MS, startTime, timeAt } from "./decision-time.ts";

/** The clocks of a machine. */
export type MachineClocks = Pick<Clock, "monotonicMs" | "sleep"> & {
  /** The clock on the wall, which may step. */
  readonly wallMs: () => number;
  /**
   * A monotonic clock that goes on while the machine sleeps; `monotonicMs` may stand still then. Null: there is none,
   * or `monotonicMs` is one itself.
   */
  readonly uptimeMs: () => number | null;
};

/** Shorter sleeps are left to the measures: some uptimes count whole seconds. */
const SLEEP_MS_MIN = 2_000;
/** Two clocks are compared only if they were read within this time of each other. */
const READ_MS_MAX = 100;
/** A correction is current for so many renewals of the member that notes it. */
export const CURRENT_LEASE_PART = 3 / 10;

export type ClockEvents = {
  /**
   * A clock has moved by more than a second against this process's monotonic clock. `machine`: the clock on the wall,
   * which only credentials use.
   */
  readonly clockStepped: (facts: { readonly clock: "database" | "machine"; readonly stepMs: number }) => void;
  /** The machine slept, or this process stood still. Decision time has jumped over that time. */
  readonly clockJumped: (facts: { readonly jumpedMs: number }) => void;
  /** Decision time minus the database's time, after each measure. */
  readonly clockMeasured: (facts: { readonly aheadMs: number }) => void;
};

/** What a renewal of this process's member read of time. */
export type RenewedTime = {
  readonly read: SharedTime;
  /** On the monotonic clock: when the renewal began, and when its answer came. */
  readonly sentMs: number;
  readonly answeredMs: number;
  readonly holds: boolean;
  readonly leaseMs: number;
};

/** A clock for decisions, which a member keeps right. */
export type DecisionClock = Clock & {
  /** Takes over what a renewal read. Returns what to note for others; null: another process notes it. */
  readonly renewed: (of: RenewedTime) => { readonly correctionMs: number; readonly notedMs: number } | null;
};

/** Makes the clock from what the database said at that moment of the monotonic clock. */
export function createDecisionClock(
  first: { readonly read: SharedTime; readonly atMs: number },
  machine: MachineClocks,
  events: ClockEvents,
): DecisionClock {
  const keeper = new Keeper(startTime(first.read, first.atMs), machine, events);
  return {
    nowMs: () => keeper.nowMs(),
    monotonicMs: machine.monotonicMs,
    sleep: machine.sleep,
    renewed: (of) => keeper.renewed(of),
  };
}

class Keeper {
  readonly #machine: MachineClocks;
  readonly #events: ClockEvents;
  readonly #sleeps: Drift;
  readonly #wall: Drift;
  #time: DecisionTime;
  /** How long the machine slept, as far as decision time has not jumped over it yet. */
  #sleptMs = 0;

  constructor(time: DecisionTime, machine: MachineClocks, events: ClockEvents) {
    this.#time = time;
    this.#machine = machine;
    this.#events = events;
    this.#sleeps = new Drift(machine.monotonicMs, machine.uptimeMs);
    this.#wall = new Drift(machine.monotonicMs, machine.wallMs);
  }

  nowMs(): number {
    return Math.floor(timeAt(this.#time, this.#machine.monotonicMs()));
  }

  renewed({ read, sentMs, answeredMs, holds, leaseMs }: RenewedTime): ReturnType<DecisionClock["renewed"]> {
    const sleptMs = Math.max(0, this.#sleeps.take(SLEEP_MS_MIN));
    this.#sleptMs += sleptMs;
    const measured = measure(this.#time, {
      read,
      sentMs,
      answeredMs,
      holds,
      sleptMs: this.#sleptMs,
      ageMsMax: leaseMs * CURRENT_LEASE_PART,
    });
    this.#time = measured.time;
    if (measured.isFollowed) this.#sleptMs = 0;
    if (measured.jumpedMs > STEP_MS) this.#events.clockJumped({ jumpedMs: Math.round(measured.jumpedMs) });
    if (measured.stepMs !== 0) this.#events.clockStepped({ clock: "database", stepMs: Math.round(measured.stepMs) });
    const wallMs = this.#wall.take(STEP_MS, sleptMs);
    if (wallMs !== 0) this.#events.clockStepped({ clock: "machine", stepMs: Math.round(wallMs) });
    this.#events.clockMeasured({ aheadMs: Math.round(timeAt(this.#time, answeredMs) - read.databaseMs) });
    const { correctionMs } = measured;
    invariant(holds === (correctionMs !== null), "the holder of the lease has a correction");
    return correctionMs === null ? null : { correctionMs, notedMs: read.databaseMs };
  }
}

/** Finds how a clock moves against the monotonic one. */
class Drift {
  readonly #aheadMs: () => number | null;
  #knownMs: number | null;

  constructor(monotonicMs: () => number, otherMs: () => number | null) {
    this.#aheadMs = () => {
      const beforeMs = monotonicMs();
      const timeMs = otherMs();
      const tookMs = monotonicMs() - beforeMs;
      return timeMs === null || tookMs > READ_MS_MAX ? null : timeMs - beforeMs;
    };
    this.#knownMs = this.#aheadMs();
  }

  /** By how much the clock has moved beyond `expectedMs` since that was last taken; 0 up to `msMin`. */
  take(msMin: number, expectedMs = 0): number {
    const aheadMs = this.#aheadMs();
    this.#knownMs = this.#knownMs === null ? aheadMs : this.#knownMs + expectedMs;
    if (aheadMs === null || this.#knownMs === null) return 0;
    const movedMs = aheadMs - this.#knownMs;
    if (Math.abs(movedMs) <= msMin) return 0;
    this.#knownMs = aheadMs;
    return movedMs;
  }
}

/** The clocks of this machine. Linux alone has a monotonic clock that stands still while the machine sleeps. */
export function machineClocks({ monotonicMs, sleep }: Pick<Clock, "monotonicMs" | "sleep">): MachineClocks {
  return {
    monotonicMs,
    sleep,
    wallMs: () => Date.now(),
    uptimeMs: process.platform === "linux" ? readUptime : () => null,
  };
}

/** Null: the system does not tell. */
function readUptime(): number | null {
  try {
    return uptime() * 1000;
  } catch {
    return null;
  }
}
