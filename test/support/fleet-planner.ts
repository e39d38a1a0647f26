import { createFleetPlanner } from "../../src/planner/fleet-planner.ts";
import type { FleetPlanner, FleetStore } from "../../src/planner/ports.ts";

/** A planner of all gangs in this process, whose lease is never lost. */
export function fleetPlanner(store: FleetStore): FleetPlanner {
  return createFleetPlanner(store, { isStopped: () => false, monotonicMs: () => performance.now() });
}
