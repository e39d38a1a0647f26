import type { ClusterState } from "../capacity/cluster-state.ts";
import type { Ask, PodClass } from "../model/ask.ts";
import type { GangHolds, PlannedFrom } from "../model/plan-gang.ts";
import type { ClusterFacts } from "../model/snapshot.ts";
import type { AskShape, SizedAsk } from "../queues/ask-shape.ts";
import type { GangQueues } from "../queues/gang-queues.ts";
import type { GangAdmissions, GangClass, GangRecord, Request, ShapeChoices } from "../queues/records.ts";
import type { ClusterBlock, ClusterBlocks } from "../queues/refusals.ts";
import type { PoolAmounts } from "../usage/branch-use.ts";
import type { QuotaState } from "../usage/quota-state.ts";
import type { Flavors } from "./flavors.ts";

/** A registered cluster, and why it refuses an ask whatever its capacity. Null: it does not. */
export type EligibleCluster = {
  readonly cluster: ClusterState;
  readonly facts: ClusterFacts;
  readonly block: ClusterBlock["reason"] | null;
};

/**
 * The state of the fleet, which anyone may read, between rounds and in them: what waits and runs, quotas, clusters. A
 * round charges quotas and places pods, and takes both back at its end.
 */
export type Fleet = {
  readonly quota: QuotaState;
  readonly queues: GangQueues;
  readonly clusters: ReadonlyMap<string, ClusterState>;
  readonly isStrict: (queue: string) => boolean;
  /** The resources that some cluster counts by flavor. */
  readonly resources: readonly string[];
  /** True for two flavors that no node has together: wherever both are, they require different values of a label. */
  readonly excludes: (one: string, other: string) => boolean;
  /** True for pods whose own selectors allow no node of a flavor: wherever it is, they require other labels. */
  readonly cannotHave: (podClass: PodClass, flavor: string) => boolean;
  /** True if some cluster has all of these flavors: all types of a gang run in one cluster. */
  readonly inOneCluster: (flavors: readonly string[]) => boolean;
  /** The tokens that a waiting gang holds, by pool. They are off the use during a round. Null: none. */
  readonly holdsOf: (uid: string) => Readonly<Record<string, number>> | null;
  /** The waiting gangs that hold tokens, with these. */
  readonly allHolds: () => Iterable<{ readonly gang: GangRecord; readonly amounts: GangHolds["amounts"] }>;
  /** The amounts of each pool that an admission of a gang takes. */
  readonly usesOf: (gang: GangRecord, admission: PlannedFrom) => PoolAmounts;
  /** Running gangs as searches for victims see them, each with the record that it was made of. */
  readonly runningAdmissions: WeakMap<GangRecord, GangAdmissions>;
  /** What waiting gangs would take of each pool, by their shapes. */
  readonly choices: WeakMap<AskShape, ShapeChoices>;
  /** The registered clusters by name. */
  readonly clustersFor: (ask: Ask) => readonly EligibleCluster[];
  /** Rises when a cluster's record changes so that requests could fit otherwise. */
  readonly clustersVersion: number;
  /** Rises with each round before which more has changed than gangs that wait: running gangs may grow then. */
  readonly growthVersion: number;
  /** `excluded`: the reservations of the round that are not charged when it is asked, by `Reserved.excluded`. */
  readonly requestOf: (gangClass: GangClass, sized: SizedAsk, flavors: Flavors, excluded: string) => Request;
  /** The answers of the clusters to some requests of an ask, made again only if they can have changed. */
  readonly shared: (shape: AskShape, requests: readonly Request[], make: () => ClusterBlocks) => ClusterBlocks;
};

/** Why a cluster refuses an ask, even if it has capacity. */
export function blockOf(ask: Ask, facts: ClusterFacts, observed: boolean): EligibleCluster["block"] {
  const { clusters, clusterSelector } = ask.placement;
  if (clusters.length > 0 && !clusters.includes(facts.name)) return "NotSelected";
  if (Object.entries(clusterSelector).some(([key, value]) => facts.labels[key] !== value)) return "NotSelected";
  if (facts.retired === true) return "Retired";
  if (facts.cordoned) return "Cordoned";
  if (!observed) return "CapacityUnknown";
  if (facts.reachable) return null;
  if (facts.returning === true) return "Returning";
  return facts.unusable === true ? "Unusable" : "Unreachable";
}
