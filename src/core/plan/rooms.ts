import { compareText } from "../../runtime/compare-text.ts";
import { stringMapAt } from "../../runtime/json.ts";
import { liveAdmission } from "../job/job.ts";
import { carries, type NodeLabels, place } from "./fit.ts";
import { mergeAlike, placeAll } from "./fit-all.ts";
import { allMembers, type MemberGroup, memberGroups } from "./gang.ts";
import type { PlanGang } from "./plan-gang.ts";
import type { ClusterRefusal } from "./plan-types.ts";
import { emptied, type SelectorKeys, type Shape, selectorKeys, shapesOf } from "./shapes.ts";
import type { BoundMember, ClusterCapacity, PlanCluster, PlanSnapshot, UnboundPod } from "./snapshot.ts";

/** Of a cluster whose capacity was never recorded. No gang is admitted to it. */
const UNKNOWN: ClusterCapacity = { nodes: [], seen: [], unbound: [] };

/** A cluster while a plan is made: the room that is left on its nodes, and how often the plan has used it. */
export type Room = {
  readonly cluster: PlanCluster;
  /** Empty also while its capacity is not known. */
  readonly shapes: readonly Shape[];
  /** The nodes as if nothing ran on them. */
  readonly empty: readonly Shape[];
  /** How many admissions this plan has made in the cluster so far. */
  readonly planned: number;
  /** Refusals by request since `shapes` last changed: gangs with the same request get the same answer. */
  readonly refused: Map<string, ClusterRefusal>;
};

/** The clusters by name, without the room of pods that no node shows yet but that will take it. */
export function openRooms(snapshot: PlanSnapshot): ReadonlyMap<string, Room> {
  const keys = keysInPlay(snapshot);
  const clusters = [...snapshot.clusters].sort((a, b) => compareText(a.name, b.name));
  return new Map(clusters.map((cluster) => [cluster.name, openRoom(cluster, snapshot.admitted, keys)]));
}

/** The part of a resource that is in use on the nodes with these labels, 0 to 1; 1 if the nodes have none of it. */
export function fullness(shapes: readonly Shape[], of: { resource: string; nodeLabels: NodeLabels }) {
  let free = 0;
  let allocatable = 0;
  for (const shape of shapes) {
    if (!carries(shape.node.labels, of.nodeLabels)) continue;
    free += (shape.free[of.resource] ?? 0) * shape.count;
    allocatable += (shape.allocatable[of.resource] ?? 0) * shape.count;
  }
  return allocatable === 0 ? 1 : 1 - free / allocatable;
}

function openRoom(cluster: PlanCluster, admitted: readonly PlanGang[], keys: SelectorKeys): Room {
  const { nodes, seen, unbound } = cluster.capacity ?? UNKNOWN;
  const unseen = admitted.flatMap((gang) => unseenGroups(gang, cluster.name, seen));
  const left = placeUnseen(shapesOf(nodes, keys), unseen);
  const shapes = place(left, unboundGroups(unbound), {}).left;
  return { cluster, shapes, empty: shapesOf(emptied(nodes), keys), planned: 0, refused: new Map() };
}

/**
 * The shapes once members that no node shows yet are placed. Members of all gangs are placed together: otherwise one
 * gang's could take the only node of another's, and the plan would give the other's room away. Members for which there
 * is no room at all, as after a node was lost, are left out, so that the others still get their places.
 */
function placeUnseen(shapes: readonly Shape[], unseen: readonly MemberGroup[]): readonly Shape[] {
  const possible = mergeAlike(unseen).map((group) => ({ ...group, count: place(shapes, [group], {}).placed }));
  return placeAll(shapes, possible, {}).left;
}

/** The members of a live admission whose pods no node shows yet. */
function unseenGroups(gang: PlanGang, cluster: string, seen: readonly BoundMember[]): readonly MemberGroup[] {
  const admission = liveAdmission(gang);
  if (admission?.cluster !== cluster) return [];
  const own = seen.filter((member) => member.jobUid === gang.uid && member.admission === admission.number);
  const unseen = Object.entries(admission.members).map(([role, count]) => [role, count - countSeen(own, role, count)]);
  return memberGroups(gang.ask, Object.fromEntries(unseen)).map((group) => onNodes(group, admission.nodeLabels));
}

/** The same pods, on nodes with these labels only, as they will be created. */
function onNodes(group: MemberGroup, nodeLabels: NodeLabels): MemberGroup {
  const nodeSelector = { ...stringMapAt(group.scheduling, "nodeSelector"), ...nodeLabels };
  return { ...group, scheduling: { ...group.scheduling, nodeSelector } };
}

/** Counts each index once, and only indexes of members. Pods have their replica type in lower case. */
function countSeen(seen: readonly BoundMember[], role: string, count: number): number {
  const indexes = seen.filter((member) => member.role === role.toLowerCase() && member.index < count);
  return new Set(indexes.map((member) => member.index)).size;
}

function unboundGroups(unbound: readonly UnboundPod[]): readonly MemberGroup[] {
  return unbound.map(({ podSpec, requests }, at) => ({
    role: `unbound-${at}`,
    scheduling: podSpec,
    requests,
    count: 1,
  }));
}

function keysInPlay(snapshot: PlanSnapshot): SelectorKeys {
  const asks = new Set([...snapshot.waiting, ...snapshot.admitted].map((gang) => gang.ask));
  const podSpecs = [
    ...[...asks].flatMap((ask) => memberGroups(ask, allMembers(ask)).map((group) => group.scheduling)),
    ...snapshot.clusters.flatMap((cluster) => (cluster.capacity ?? UNKNOWN).unbound.map((pod) => pod.podSpec)),
  ];
  const demanded = [
    ...snapshot.clusters.flatMap((cluster) => cluster.flavors.flatMap((flavor) => Object.keys(flavor.nodeLabels))),
    ...snapshot.admitted.flatMap((gang) => gang.admissions.flatMap((admission) => Object.keys(admission.nodeLabels))),
  ];
  return selectorKeys(podSpecs, demanded);
}
