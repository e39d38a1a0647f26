import { canonicalJson } from "../../runtime/json.ts";
import { clusterName } from "../job/cluster-text.ts";
import { blockedPod, type FlavorLabels } from "./blocked-pod.ts";
import { describeBlocked } from "./blocked-words.ts";
import type { NodeLabels } from "./fit.ts";
import { fitKeyOf, placeAll } from "./fit-all.ts";
import type { FlavorChoice } from "./flavors.ts";
import { type MemberGroup, podCount } from "./gang.ts";
import type { PlanGang } from "./plan-gang.ts";
import type { ClusterRefusal } from "./plan-types.ts";
import { fullness, type Room } from "./rooms.ts";
import { unselected } from "./selects.ts";
import type { Shape } from "./shapes.ts";
import type { PlanCluster } from "./snapshot.ts";
import { describeNeed } from "./words.ts";

/** A cluster that has room for a gang, and its nodes once the gang is placed. */
export type ClusterPlacement = {
  readonly room: Room;
  readonly left: readonly Shape[];
  readonly nodeLabels: NodeLabels;
};

/** Refuses a cluster that the gang may not use, even if it has room. Null: the gang may use it. */
export function refuseCluster(gang: PlanGang, cluster: PlanCluster): ClusterRefusal | null {
  const none = { flavor: null, need: 0, have: 0, blocked: null };
  const refusal = (reason: string, message: string) => ({ ...mentionOf(cluster), reason, message, ...none });
  const leftOut = unselected(gang.ask.placement, cluster);
  if (leftOut !== null) return refusal("NotSelected", leftOut);
  if (cluster.retired)
    return refusal("Retired", "it is simulated, and takes no gangs since a real cluster is registered");
  if (cluster.cordoned) return refusal("Cordoned", "it is cordoned");
  if (cluster.capacity === null) return refusal("CapacityUnknown", "its capacity has not been observed yet");
  if (!cluster.reachable) return refusal("Unreachable", "it cannot be reached");
  const draining = gang.admissions.find((old) => old.cluster === cluster.name && old.goneMs === null);
  if (draining !== undefined)
    return refusal("Draining", `admission ${draining.number} of this job has not left it yet`);
  return null;
}

function mentionOf({ name, simulated }: PlanCluster): Pick<ClusterRefusal, "cluster" | "simulated"> {
  return { cluster: name, ...(simulated === true ? { simulated } : {}) };
}

/** The node labels that flavors require in a cluster, or the first flavor that the cluster lacks. */
function labelsOf(cluster: PlanCluster, choice: FlavorChoice): FlavorLabels | { readonly lacks: string } {
  const nodeLabels: Record<string, string> = {};
  const flavorOf: Record<string, string> = {};
  for (const [resource, name] of Object.entries(choice)) {
    const flavor = cluster.flavors.find((known) => known.name === name && known.resource === resource);
    if (flavor === undefined) return { lacks: name };
    Object.assign(nodeLabels, flavor.nodeLabels);
    for (const key of Object.keys(flavor.nodeLabels)) flavorOf[key] = name;
  }
  return { nodeLabels, flavorOf };
}

/**
 * Tries one choice of flavors in every cluster that the gang may use. Returns the best placement, or null and why each
 * cluster has no room. Best is the fullest cluster, but last comes the one where the gang's last admission was undone.
 */
export function chooseCluster(
  gang: PlanGang,
  groups: readonly MemberGroup[],
  within: { readonly rooms: readonly Room[]; readonly choice: FlavorChoice },
): { readonly placement: ClusterPlacement | null; readonly refusals: readonly ClusterRefusal[] } {
  const refusals: ClusterRefusal[] = [];
  const placements: ClusterPlacement[] = [];
  const request = canonicalJson([groups.map((group) => [group.role, fitKeyOf(group), group.count]), within.choice]);
  for (const room of within.rooms) {
    const tried = room.refused.get(request) ?? tryRoom(room, groups, within.choice);
    if ("reason" in tried) {
      room.refused.set(request, tried);
      refusals.push(tried);
    } else placements.push(tried);
  }
  const last = gang.backoff?.lastCluster;
  const resource = Object.keys(within.choice)[0] ?? "cpu";
  const ranked = placements.map((placement) => ({
    placement,
    late: placement.room.cluster.name === last ? 1 : 0,
    full: fullness(placement.left, { resource, nodeLabels: placement.nodeLabels }),
  }));
  ranked.sort((a, b) => a.late - b.late || b.full - a.full);
  return { placement: ranked[0]?.placement ?? null, refusals };
}

function tryRoom(room: Room, groups: readonly MemberGroup[], choice: FlavorChoice): ClusterPlacement | ClusterRefusal {
  const mention = mentionOf(room.cluster);
  const cluster = clusterName(room.cluster);
  const flavor = Object.values(choice)[0] ?? null;
  const need = podCount(groups);
  const labels = labelsOf(room.cluster, choice);
  if ("lacks" in labels) {
    const message = `it has no ${labels.lacks}`;
    return { ...mention, reason: "NoSuchFlavor", message, flavor: labels.lacks, need, have: 0, blocked: null };
  }
  const now = placeAll(room.shapes, groups, labels.nodeLabels);
  if (now.placed === need) return { room, left: now.left, nodeLabels: labels.nodeLabels };
  const ever = placeAll(room.empty, groups, labels.nodeLabels);
  const tooLarge = ever.placed < need;
  const blocked = blockedPod({ ...room, ...(tooLarge ? { shapes: room.empty } : {}) }, groups, labels);
  const gang = describeNeed(groups, choice);
  const message = describeBlocked(blocked, { cluster, gang, fit: (tooLarge ? ever : now).placed, tooLarge });
  const reason = tooLarge ? "TooLarge" : "NoCapacity";
  return { ...mention, reason, message, flavor, need, have: now.placed, blocked };
}
