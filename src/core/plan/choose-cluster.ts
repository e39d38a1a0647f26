import { canonicalJson } from "../../runtime/json.ts";
import type { Job } from "../job/job.ts";
import { placeAll } from "./fit-all.ts";
import type { FlavorChoice } from "./flavors.ts";
import { kindOf, type MemberGroup, podCount } from "./gang.ts";
import type { ClusterRefusal } from "./plan-types.ts";
import { fullness, type Room } from "./rooms.ts";
import type { Shape } from "./shapes.ts";
import type { PlanCluster } from "./snapshot.ts";
import { describeNeed } from "./words.ts";

type Labels = Readonly<Record<string, string>>;

/** A cluster that takes the gang, and what its nodes have left then. */
export type Berth = { readonly room: Room; readonly left: readonly Shape[]; readonly nodeLabels: Labels };

/** Why the gang may not use a cluster at all, whatever is free there; null if it may. */
export function barred(job: Job, cluster: PlanCluster): ClusterRefusal | null {
  const no = (reason: string, message: string) => ({
    cluster: cluster.name,
    reason,
    message,
    flavor: null,
    need: 0,
    have: 0,
  });
  const { clusters, clusterSelector } = job.spec.placement;
  if (clusters.length > 0 && !clusters.includes(cluster.name)) {
    return no("NotSelected", `the job asks for ${clusters.join(", ")}`);
  }
  const missing = Object.entries(clusterSelector).find(([key, value]) => cluster.labels[key] !== value);
  if (missing !== undefined) return no("NotSelected", `it has no label ${missing[0]}=${missing[1]}`);
  if (cluster.cordoned) return no("Cordoned", "it is cordoned");
  if (cluster.capacity === null) return no("CapacityUnknown", "its capacity has not been observed yet");
  if (!cluster.reachable) return no("Unreachable", "it cannot be reached");
  const leaving = job.admissions.find((old) => old.cluster === cluster.name && old.goneMs === null);
  if (leaving !== undefined) return no("Draining", `admission ${leaving.number} of this job has not left it yet`);
  return null;
}

/** The node labels that flavors demand in a cluster, or the flavor that it has not. */
function labelsOf(cluster: PlanCluster, choice: FlavorChoice): { nodeLabels: Labels } | { lacks: string } {
  const labels: Record<string, string> = {};
  for (const [resource, name] of Object.entries(choice)) {
    const flavor = cluster.flavors.find((known) => known.name === name && known.resource === resource);
    if (flavor === undefined) return { lacks: name };
    Object.assign(labels, flavor.nodeLabels);
  }
  return { nodeLabels: labels };
}

/** Tries one choice of flavors in every cluster that is open to the gang; the best berth, or why none has room. */
export function chooseCluster(
  job: Job,
  groups: readonly MemberGroup[],
  within: { readonly rooms: readonly Room[]; readonly choice: FlavorChoice },
): { readonly berth: Berth | null; readonly refusals: readonly ClusterRefusal[] } {
  const refusals: ClusterRefusal[] = [];
  const berths: Berth[] = [];
  const asked = canonicalJson([groups.map((group) => [kindOf(group), group.count]), within.choice]);
  for (const room of within.rooms) {
    const tried = room.refused.get(asked) ?? tryRoom(room, groups, within.choice);
    if ("reason" in tried) {
      room.refused.set(asked, tried);
      refusals.push(tried);
    } else berths.push(tried);
  }
  const last = job.status.backoff?.lastCluster;
  const resource = Object.keys(within.choice)[0] ?? "cpu";
  const ranked = berths.map((berth) => ({
    berth,
    late: berth.room.cluster.name === last ? 1 : 0,
    full: fullness(berth.left, { resource, nodeLabels: berth.nodeLabels }),
  }));
  ranked.sort((a, b) => a.late - b.late || b.full - a.full);
  return { berth: ranked[0]?.berth ?? null, refusals };
}

function tryRoom(room: Room, groups: readonly MemberGroup[], choice: FlavorChoice): Berth | ClusterRefusal {
  const cluster = room.cluster.name;
  const flavor = Object.values(choice)[0] ?? null;
  const need = podCount(groups);
  const labels = labelsOf(room.cluster, choice);
  if ("lacks" in labels) {
    return {
      cluster,
      reason: "NoSuchFlavor",
      message: `it has no ${labels.lacks}`,
      flavor: labels.lacks,
      need,
      have: 0,
    };
  }
  const now = placeAll(room.shapes ?? [], groups, labels.nodeLabels);
  if (now.placed === need) return { room, left: now.left, nodeLabels: labels.nodeLabels };
  const words = describeNeed(groups, choice);
  const ever = placeAll(room.empty, groups, labels.nodeLabels);
  if (ever.placed < need) {
    const message = `needs ${words}; ${cluster} takes ${ever.placed} even when it is empty`;
    return { cluster, reason: "TooLarge", message, flavor, need, have: now.placed };
  }
  const message = `needs ${words}; ${now.placed} fit now on ${cluster}`;
  return { cluster, reason: "NoCapacity", message, flavor, need, have: now.placed };
}
