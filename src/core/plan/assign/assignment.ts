import type { PlannedPreemption } from "../model/preemption.ts";
import type { FoundVictims } from "../preempt/find-victims.ts";
import type { CapacityTry, Request, ReservedCapacity } from "../queues/records.ts";
import type { PoolAmounts } from "../usage/branch-use.ts";

/** The flavors and the cluster that the first gang of a class would get now. */
export type Assignment = {
  /**
   * `preempts`: it fits once others were preempted. `inLine`: a cluster has capacity for it, and it lacks only tokens
   * of pools. `service`: it needs no cluster. `awaits`: it fits in `capacity` once all are gone that leave anyway.
   */
  readonly kind: "fits" | "preempts" | "inLine" | "service" | "awaits";
  /** Null: it needs no cluster. */
  readonly request: Request | null;
  /** The amounts that it takes of each pool. */
  readonly requested: PoolAmounts;
  /** The gangs that are preempted for it, and where. Null: none is. */
  readonly victims: FoundVictims | null;
  /** Where it waits for gangs that leave. */
  readonly tried?: CapacityTry;
  /** The nominees that give up what they hold for it. Omitted: none. */
  readonly overtakes?: OvertakenNominees;
};

export type OvertakenNominees = {
  readonly nominees: readonly ReservedCapacity[];
  /** False: they have capacity beside it once all are gone that leave, and wait for that. */
  readonly end: boolean;
};

/** How a gang that preempts others fared: `reserved`: it waits for victims of others. `skipped`: it no longer fits. */
export type Preempted = PlannedPreemption | "reserved" | "skipped";

/** What a gang gets that needs no cluster. */
export const SERVICE: Assignment = { kind: "service", request: null, requested: new Map(), victims: null };

/** The amounts of each pool that an assignment adds to what is charged: what nominees give up for it is charged. */
export function addedBy({ requested, overtakes }: Assignment): PoolAmounts {
  if (overtakes === undefined || !overtakes.end) return requested;
  const added = new Map(requested);
  for (const { requested: given } of overtakes.nominees) {
    for (const [pool, amount] of added) added.set(pool, Math.max(0, amount - (given.get(pool) ?? 0)));
  }
  return added;
}
