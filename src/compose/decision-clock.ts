/** Starts the clock by which this process decides. Its member keeps it right (see `runtime/decision-time`). */
import type { Executor } from "../adapters/store/db/db.ts";
import { readTime, type StartRead } from "../adapters/store/fleet/decision-clock.ts";
import { systemClock } from "../runtime/clock.ts";
import {
  CURRENT_LEASE_PART,
  createDecisionClock,
  type DecisionClock,
  type MachineClocks,
  machineClocks,
} from "../runtime/decision-clock.ts";
import { isCurrent } from "../runtime/decision-time.ts";
import type { Telemetry } from "../telemetry/events.ts";

/** How often the database is asked for its time; the quickest answer is the most exact. */
const ASKS = 3;
/** How often a process that starts looks within the time for which a correction is current. */
const LOOKS = 10;

/** Within this part of a lease the lease of the clock has a holder that lives, if any process lives. */
const TAKEN_LEASE_PART = 13 / 10;

/**
 * Reads the time from the database. While another process may hold the lease of the clock, it waits until the
 * correction is current: the database's clock may have stepped just now. It waits for three renewals if no process
 * renews, else until one of the others must have taken the lease.
 */
export async function startClock(
  db: Executor,
  of: {
    readonly leaseMs: number;
    readonly telemetry: Pick<Telemetry, "clockStepped" | "clockJumped" | "clockMeasured">;
    /** No other process uses the database. */
    readonly isAlone: boolean;
  },
  machine: MachineClocks = machineClocks(systemClock()),
): Promise<DecisionClock> {
  const ageMsMax = of.leaseMs * CURRENT_LEASE_PART;
  const startedMs = machine.monotonicMs();
  let { renewals }: Pick<StartRead, "renewals"> = await readTime(db);
  let isAnyAlive = false;
  for (;;) {
    const first = await askTime(db, machine);
    isAnyAlive ||= first.read.renewals > renewals;
    renewals = first.read.renewals;
    const waitsMs = isAnyAlive ? of.leaseMs * TAKEN_LEASE_PART : ageMsMax;
    const isOver = machine.monotonicMs() - startedMs >= waitsMs;
    if (of.isAlone || !first.read.isHeld || isOver || isCurrent(first.read, ageMsMax)) {
      return createDecisionClock(first, machine, of.telemetry);
    }
    await machine.sleep(ageMsMax / LOOKS);
  }
}

/** The time in the database, at a moment of the monotonic clock, within half a round trip. */
async function askTime(
  db: Executor,
  { monotonicMs }: MachineClocks,
): Promise<{ readonly read: StartRead; readonly atMs: number }> {
  let best: { readonly read: StartRead; readonly atMs: number } | null = null;
  let bestMs = Number.POSITIVE_INFINITY;
  for (let ask = 0; ask < ASKS || best === null; ask += 1) {
    const sentMs = monotonicMs();
    const read = await readTime(db);
    const tookMs = monotonicMs() - sentMs;
    if (best !== null && tookMs >= bestMs) continue;
    best = { read, atMs: sentMs + tookMs / 2 };
    bestMs = tookMs;
  }
  return best;
}
