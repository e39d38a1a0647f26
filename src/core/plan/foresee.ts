/** Finds out whether a job that is about to be submitted can never run, so that its user need not wait to learn it. */

import { invariant } from "../../runtime/assert.ts";
import { judgeAlone } from "./explain/judge-alone.ts";
import type { FleetState } from "./fleet-state.ts";
import type { PlanGang } from "./model/plan-gang.ts";
import type { Refusal } from "./model/plan-types.ts";
import { haltOf } from "./model/queue-stop.ts";
import type { NeverRuns } from "./model/simulation.ts";
import { judgeCluster, SIMULATED_VERSION } from "./simulate.ts";

/** How many other queues are tried. Each costs about as much as the gang's own. */
export const OTHER_QUEUES_MAX = 8;

/**
 * Judges a gang as if nothing else ran, with the limits and clusters as they are. Null: it can run, or whether it can
 * is not known yet. `mayUse`: the queues that may be named. Leaves the state as it was.
 */
export function neverRuns(state: FleetState, gang: PlanGang, mayUse: (queue: string) => boolean): NeverRuns | null {
  const mark = state.mark();
  try {
    for (const name of state.parts.clusters.keys()) state.parts.syncCapacity(name);
    const refusal = refusalOf(state, gang);
    return refusal && { refusal, queue: otherQueue(state, gang, mayUse) };
  } finally {
    state.rollback(mark);
  }
}

function refusalOf(state: FleetState, gang: PlanGang): Refusal | null {
  state.apply({ kind: "gang", uid: gang.uid, version: SIMULATED_VERSION, gang });
  const queued = state.parts.queues.gangs.get(gang.uid);
  invariant(queued !== undefined, "the state has the gang that was added");
  const { refusal, clusters } = judgeAlone(state.parts, queued);
  if (refusal === null || !clusters.every((one) => judgeCluster(one, refusal).verdict === "NEVER")) return null;
  return refusal;
}

/** The first queue by name that admits gangs and could take this one. */
function otherQueue(state: FleetState, gang: PlanGang, mayUse: (queue: string) => boolean): string | null {
  const { queues } = state.parts.quota;
  const names = [...queues.keys()].filter((name) => name !== gang.queue && haltOf(name, queues) === null).sort();
  const usable = firstOf(names, mayUse, OTHER_QUEUES_MAX);
  return usable.find((queue) => refusalOf(state, { ...gang, uid: `${gang.uid} ${queue}`, queue }) === null) ?? null;
}

/** The first `max` items for which the condition holds. Does not ask about later ones. */
function firstOf<T>(items: readonly T[], holds: (item: T) => boolean, max: number): readonly T[] {
  const found: T[] = [];
  for (const item of items) {
    if (found.length >= max) break;
    if (holds(item)) found.push(item);
  }
  return found;
}
