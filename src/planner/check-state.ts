import {
  compareStates,
  FactHashes,
  lastingDifference,
  type StateDifference,
} from "../core/plan/facts/compare-states.ts";
import type { KnownFleet } from "../core/plan/facts/fleet-read.ts";
import type { FleetFollower } from "./fleet-follower.ts";
import type { FleetStore, StateCheck } from "./ports.ts";

/** How often what differs is compared again before it counts as an error. Most of it is only on its way. */
const COMPARED_AGAIN = 3;

/**
 * Compares a state that follows the store with what the store has. Changes are on their way at any moment: so only what
 * differs in the same way each time, with everything read in between, counts. The state may go on deciding meanwhile.
 */
export async function checkState(store: FleetStore, follower: FleetFollower): Promise<StateCheck> {
  let found = await difference(store, follower);
  for (let again = 0; again < COMPARED_AGAIN && found.size > 0; again += 1) {
    found = lastingDifference(found, await difference(store, follower));
  }
  return { wrong: [...found.keys()].sort() };
}

async function difference(store: FleetStore, follower: FleetFollower): Promise<StateDifference> {
  const loaded = await loadHashes(store);
  await follower.catchUp();
  return compareStates(follower.planner, loaded);
}

const NOTHING_KNOWN: KnownFleet = { versionOf: () => null, usedOf: () => 0, cursorOf: () => null };

/** Reads everything, and keeps only the hashes: a second state would double the memory. */
async function loadHashes(store: FleetStore): Promise<FactHashes> {
  let hashes = new FactHashes();
  let read = await store.readFleet(null, NOTHING_KNOWN);
  for (;;) {
    if (read.restarts) hashes = new FactHashes();
    for (const change of read.changes) hashes.apply(change);
    // The read that is not a page of the load has all settings, sums and nodes, and the gangs that changed meanwhile.
    if (read.place.loadedTo === null && read.place.limitsVersion !== null) return hashes;
    read = await store.readFleet(read.place, NOTHING_KNOWN);
  }
}
