import { stringMapAt } from "../../runtime/json.ts";
import { specNow } from "../job/interruptible.ts";
import type { Job } from "../job/job.ts";
import { currentAdmission } from "../job/job.ts";
import { carries, place } from "./fit.ts";
import { mergeKinds, placeAll } from "./fit-all.ts";
import { allMembers, type MemberGroup, memberGroups } from "./gang.ts";
import type { ClusterRefusal } from "./plan-types.ts";
import { emptied, type SelectorKeys, type Shape, selectorKeys, shapesOf } from "./shapes.ts";
import type { ClusterCapacity, PlanCluster, PlanSnapshot, SeenMember } from "./snapshot.ts";

/** A cluster while a plan is made: what is left of its nodes, and how often the plan has used it. */
export type Room = {
  readonly cluster: PlanCluster;
  /** Null where no capacity is known. */
  readonly shapes: readonly Shape[] | null;
  /** The nodes as if nothing ran on them. */
  readonly empty: readonly Shape[];
  /** Admissions that this plan has made in the cluster so far. */
  readonly planned: number;
  /** What was refused as long as just so much was left, by what was asked: gangs that ask for the same get the same answer. */
  readonly refused: Map<string, ClusterRefusal>;
};

/** The clusters by name, each charged with what will take room on it although no node shows it yet. */
export function openRooms(snapshot: PlanSnapshot): ReadonlyMap<string, Room> {
  const keys = keysInPlay(snapshot);
  const clusters = [...snapshot.clusters].sort((a, b) => (a.name < b.name ? -1 : 1));
  return new Map(clusters.map((cluster) => [cluster.name, openRoom(cluster, snapshot.admitted, keys)]));
}

/** How full the nodes with these labels are of a resource, 0 to 1; 1 where there is nothing of it at all. */
export function fullness(
  shapes: readonly Shape[],
  of: { resource: string; nodeLabels: Readonly<Record<string, string>> },
) {
  let free = 0;
  let allocatable = 0;
  for (const shape of shapes) {
    if (!carries(shape.node.labels, of.nodeLabels)) continue;
    free += (shape.free[of.resource] ?? 0) * shape.count;
    allocatable += (shape.allocatable[of.resource] ?? 0) * shape.count;
  }
  return allocatable === 0 ? 1 : 1 - free / allocatable;
}

function openRoom(cluster: PlanCluster, admitted: readonly Job[], keys: SelectorKeys): Room {
  if (cluster.capacity === null) return { cluster, shapes: null, empty: [], planned: 0, refused: new Map() };
  const unseen = admitted.flatMap((job) => unseenGroups(job, cluster));
  let shapes = seat(shapesOf(cluster.capacity.nodes, keys), unseen);
  shapes = place(shapes, unboundGroups(cluster.capacity), {}).left;
  return { cluster, shapes, empty: shapesOf(emptied(cluster.capacity.nodes), keys), planned: 0, refused: new Map() };
}

/**
 * What is left once members that no node shows yet have their places, all gangs' together: one gang's must not take the only node of another's,
 * whose room would be given away then. Pods for which there is no room at all, as on a node that was lost, spoil nobody else's place.
 */
function seat(shapes: readonly Shape[], unseen: readonly MemberGroup[]): readonly Shape[] {
  const possible = mergeKinds(unseen).map((group) => ({ ...group, count: place(shapes, [group], {}).placed }));
  return placeAll(shapes, possible, {}).left;
}

/** Members of a live admission whose pods no node shows yet. */
function unseenGroups(job: Job, cluster: PlanCluster): readonly MemberGroup[] {
  const admission = currentAdmission(job);
  if (admission === null || admission.state !== "live" || admission.cluster !== cluster.name) return [];
  const seen = (cluster.capacity?.seen ?? []).filter(
    (member) => member.jobUid === job.uid && member.admission === admission.number,
  );
  const unseen = Object.entries(admission.members).map(([role, count]) => [role, count - seenOf(seen, role, count)]);
  return memberGroups(specNow(job), Object.fromEntries(unseen)).map((group) => onNodes(group, admission.nodeLabels));
}

/** The same pods as they are made: on nodes with these labels only. */
function onNodes(group: MemberGroup, nodeLabels: Readonly<Record<string, string>>): MemberGroup {
  const nodeSelector = { ...stringMapAt(group.podSpec, "nodeSelector"), ...nodeLabels };
  return { ...group, podSpec: { ...group.podSpec, nodeSelector } };
}

/** Pods carry their replica type in lower case; an index seen twice is one member, one beyond the members is none. */
function seenOf(seen: readonly SeenMember[], role: string, count: number): number {
  const indexes = seen.filter((member) => member.role === role.toLowerCase() && member.index < count);
  return new Set(indexes.map((member) => member.index)).size;
}

function unboundGroups(capacity: ClusterCapacity): readonly MemberGroup[] {
  return capacity.unbound.map(({ podSpec, requests }, at) => ({ role: `unbound-${at}`, podSpec, requests, count: 1 }));
}

function keysInPlay(snapshot: PlanSnapshot): SelectorKeys {
  const jobs = [...snapshot.waiting, ...snapshot.admitted];
  const podSpecs = [
    ...jobs.flatMap((job) => memberGroups(specNow(job), allMembers(job.spec)).map((group) => group.podSpec)),
    ...snapshot.clusters.flatMap((cluster) => (cluster.capacity?.unbound ?? []).map((pod) => pod.podSpec)),
  ];
  const demanded = [
    ...snapshot.clusters.flatMap((cluster) => cluster.flavors.flatMap((flavor) => Object.keys(flavor.nodeLabels))),
    ...snapshot.admitted.flatMap((job) => job.admissions.flatMap((admission) => Object.keys(admission.nodeLabels))),
  ];
  return selectorKeys(podSpecs, demanded);
}
