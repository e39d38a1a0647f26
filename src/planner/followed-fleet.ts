/** The fleet in the memory of a process that explains and simulates jobs. It costs nothing while nobody asks. */
import { setImmediate } from "node:timers/promises";
import type { HeldByCaller } from "../core/plan/model/snapshot.ts";
import type { Planner } from "../core/plan/planner.ts";
import type { Clock } from "../runtime/clock.ts";
import { Semaphore } from "../runtime/semaphore.ts";
import { SharedCalls } from "../runtime/shared-calls.ts";
import { FleetFollower } from "./fleet-follower.ts";
import type { FleetStore } from "./ports.ts";

/** After so long without a question, the state is dropped. The next question loads it again. */
export const IDLE_MS_MAX = 180_000;

/** The clusters, limits and use of the fleet at one moment, and the gangs that run, hold tokens or are nominated. */
export type FleetNow = {
  readonly planner: Planner;
  readonly callers: readonly HeldByCaller[];
  readonly nowMs: number;
};

export type FollowedFleet = {
  /**
   * Brings the fleet to the present, and calls back with it. Calls that wait at the same time share one catch-up. No
   * other call moves or sees the state until `use` has ended. Null: the caller left before its turn. Throws the errors
   * of the store.
   */
  readonly read: <T>(use: (fleet: FleetNow) => T | Promise<T>, signal: AbortSignal) => Promise<T | null>;
  /** Drops the state. */
  readonly close: () => void;
};

type FollowedFleetPorts = {
  readonly clock: Pick<Clock, "nowMs" | "sleep">;
  /** The functions that one state follows from its beginning to its end. */
  readonly followTakers: () => Pick<FleetStore, "readFleet" | "gangsOf">;
};

/** Makes a fleet whose state is loaded by the first question. */
export function createFollowedFleet({ clock, followTakers }: FollowedFleetPorts): FollowedFleet {
  const catchUps = new SharedCalls(1);
  // Nobody sees a state that is half way to the present, and others have their turn between two uses.
  const turns = new Semaphore(1);
  let follower: FleetFollower | null = null;
  let idle = new AbortController();

  async function catchUp(): Promise<FleetFollower> {
    follower ??= new FleetFollower(followTakers(), { pause: setImmediate });
    const own = follower;
    await own.catchUp();
    return own;
  }

  function close(): void {
    idle.abort();
    follower = null;
  }

  async function dropWhenIdle(): Promise<void> {
    idle.abort();
    const own = new AbortController();
    idle = own;
    await clock.sleep(IDLE_MS_MAX, own.signal);
    if (!own.signal.aborted) close();
  }

  return {
    async read(use, signal) {
      const own = await catchUps.run("", () => turns.run(catchUp), signal);
      if (own === null || signal.aborted) return null;
      void dropWhenIdle();
      return turns.run(async () => {
        await setImmediate();
        const { planner, callers } = own;
        return use({ planner, callers, nowMs: clock.nowMs() });
      });
    },
    close,
  };
}
