/**
 * Decides which clusters that do not answer count as lost, so that gangs which never ran there go elsewhere. It serves
 * users whose gangs would wait for a cluster that is gone, and must not take this service's own silence for a
 * cluster's.
 */
import { compareText } from "../../runtime/compare-text.ts";
import type { ClusterRecord, ClusterStateName } from "./cluster.ts";

/** A cluster as the judgement needs it. */
export type JudgedCluster = {
  readonly name: string;
  readonly state: ClusterStateName;
  /** For how long an observer that asked got no answer. The time of clocks does not count. */
  readonly silenceMs: number;
  /** Devices of its flavors; nodes if nobody's flavors have devices. Only the ratio of clusters matters. */
  readonly size: number;
  readonly simulated: boolean;
};

export type LossRule = {
  readonly lostAfterMs: number;
  /** All that are lost together may have so much of the fleet, from 0 to 1. One alone may have more. */
  readonly shareMax: number;
};

export type Losses = {
  /** The clusters that count as lost from now on. */
  readonly lost: readonly string[];
  /** Those that would, if too much did not fall silent at once. An operator has to decide. */
  readonly held: readonly string[];
};

/**
 * A cluster is lost after `lostAfterMs` of counted silence, if another one of its kind answers, so that the network of
 * this service works; a simulated cluster proves nothing about real ones. While several do not answer, those that are
 * lost or silent may hold at most `shareMax` of the fleet together: more than that is rather a fault of the network
 * between. A cluster that refuses this service answers, and is never lost.
 */
export function judgeLosses(clusters: readonly JudgedCluster[], rule: LossRule): Losses {
  const kinds = [true, false].map((simulated) => clusters.filter((one) => one.simulated === simulated));
  const each = kinds.map((alike) => lossesAmong(alike, rule));
  return { lost: each.flatMap(({ lost }) => lost), held: each.flatMap(({ held }) => held) };
}

function lossesAmong(clusters: readonly JudgedCluster[], { lostAfterMs, shareMax }: LossRule): Losses {
  const due = clusters
    .filter(({ state, silenceMs }) => state === "UNREACHABLE" && silenceMs >= lostAfterMs)
    .map(({ name }) => name)
    .sort(compareText);
  if (!clusters.some(({ state }) => state === "ACTIVE" || state === "RETURNING")) return { lost: [], held: due };
  // One that was never seen with nodes, such as a registration with a wrong address, has nothing to lose.
  const away = clusters.filter(({ state, size }) => (state === "UNREACHABLE" || state === "LOST") && size > 0);
  const sizeOf = (some: readonly JudgedCluster[]) => some.reduce((sum, { size }) => sum + size, 0);
  const isAlone = away.length <= 1;
  const isFew = sizeOf(away) <= shareMax * sizeOf(clusters);
  return isAlone || isFew ? { lost: due, held: [] } : { lost: [], held: due };
}

/** The size of each cluster by name: the devices that its flavors count, or its nodes if there are no devices. */
export function clusterSizes(
  clusters: readonly Pick<ClusterRecord, "name" | "flavors" | "capacity">[],
): ReadonlyMap<string, number> {
  const devices = new Map(clusters.map((one) => [one.name, devicesOf(one)]));
  if ([...devices.values()].some((count) => count > 0)) return devices;
  return new Map(clusters.map(({ name, capacity }) => [name, capacity?.nodes.length ?? 0]));
}

function devicesOf({ flavors, capacity }: Pick<ClusterRecord, "flavors" | "capacity">): number {
  const resources = [...new Set(flavors.map(({ resource }) => resource))];
  const nodes = capacity?.nodes ?? [];
  return nodes.reduce((sum, { allocatable }) => {
    return sum + resources.reduce((own, resource) => own + Math.max(0, allocatable[resource] ?? 0), 0);
  }, 0);
}
