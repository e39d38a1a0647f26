import { compareText } from "../../../runtime/compare-text.ts";
import { foreignText } from "../../../runtime/foreign-text.ts";
import { arrayAt, type JsonObject, objectAt, stringAt, stringMapAt } from "../../../runtime/json.ts";
import { append } from "../../../runtime/lists.ts";
import { hostPortsOf } from "../../pods/fit/host-ports.ts";
import type { Taint } from "../../pods/node-match.ts";
import { type PodView, podView } from "../../pods/read/pod-view.ts";
import { podRequests, type Resources, readResources } from "../../pods/resources.ts";
import { type CapacityEntry, capacityOf, compareMembers } from "../model/capacity-entry.ts";
import type { BoundMember, ClusterCapacity, NodeCapacity, NodeTrouble } from "../model/snapshot.ts";

/**
 * A cluster's capacity from the JSON of all its nodes and pods, as the API server sends them. Pods that have ended take
 * no capacity; pods that are being deleted take theirs until they have ended. A node that is not ready counts as
 * unschedulable. The order of the result does not depend on the order of the arguments.
 */
export function summarize(nodes: readonly JsonObject[], pods: readonly JsonObject[]): ClusterCapacity {
  return capacityOf(capacityEntries(nodes, pods));
}

/** All entries of a cluster's capacity, from the JSON of all its nodes and pods. */
export function capacityEntries(nodes: readonly JsonObject[], pods: readonly JsonObject[]): readonly CapacityEntry[] {
  const bound = Map.groupBy(pods, (pod) => stringAt(objectAt(pod, "spec"), "nodeName") ?? "");
  const byName = new Map(nodes.map((node) => [stringAt(objectAt(node, "metadata"), "name") ?? "", node]));
  const names = new Set([...byName.keys(), ...bound.keys()]);
  const entries = [...names].flatMap((name) => {
    const onNode = name === "" ? [] : (bound.get(name) ?? []);
    return nodeEntry(name, byName.get(name) ?? null, onNode) ?? [];
  });
  return [...entries, ...(bound.get("") ?? []).flatMap((pod) => unboundEntry(podKey(pod), pod) ?? [])];
}

/**
 * The entry of one node from its JSON and that of the pods that are bound to it. Null: there is no such node, and no
 * member is bound to it.
 */
export function nodeEntry(name: string, node: JsonObject | null, pods: Iterable<JsonObject>): CapacityEntry | null {
  const used: Record<string, number> = {};
  const ports = new Set<string>();
  const members: BoundMember[] = [];
  for (const pod of pods) {
    const view = podView(pod);
    if (hasEnded(view)) continue;
    addTo(used, podRequests(objectAt(pod, "spec")));
    for (const port of hostPortsOf(objectAt(pod, "spec"))) ports.add(port);
    append(members, memberOf(view));
  }
  if (node === null && members.length === 0) return null;
  return {
    kind: "node",
    name,
    node: node === null ? null : { ...nodeCapacity(node, used), ...withPorts([...ports].sort(compareText)) },
    members: members.sort(compareMembers),
  };
}

/**
 * The entry of a pod of others that is not bound to a node yet, under its `namespace/name`. Null: it will not take
 * capacity, or is no such pod.
 */
export function unboundEntry(name: string, pod: JsonObject): CapacityEntry | null {
  const view = podView(pod);
  if (hasEnded(view) || view.nodeName !== "" || view.jobUid !== null || view.deleting) return null;
  const podSpec = objectAt(pod, "spec");
  const takes = { requests: podRequests(podSpec), ...withPorts(hostPortsOf(podSpec)) };
  return { kind: "unbound", name, pod: { podSpec: schedulingPart(podSpec), ...takes } };
}

function withPorts(hostPorts: readonly string[]): Pick<NodeCapacity, "hostPorts"> {
  return hostPorts.length === 0 ? {} : { hostPorts };
}

function hasEnded({ phase }: PodView): boolean {
  return phase === "Succeeded" || phase === "Failed";
}

/** The pod's member; empty if Gangway did not create the pod. */
function memberOf({ jobUid, admission, role, index }: PodView): readonly BoundMember[] {
  return jobUid === null || role === null || index === null ? [] : [{ jobUid, admission, role, index }];
}

function nodeCapacity(node: JsonObject, used: Resources): NodeCapacity {
  const metadata = objectAt(node, "metadata");
  const spec = objectAt(node, "spec");
  const status = objectAt(node, "status");
  const name = stringAt(metadata, "name") ?? "";
  const allocatable = readResources(objectAt(status, "allocatable"));
  const free = Object.fromEntries(
    Object.entries(allocatable).map(([resource, amount]) => [resource, amount - (used[resource] ?? 0)]),
  );
  const trouble = troubleOf(node);
  return {
    name,
    labels: stringMapAt(metadata, "labels"),
    taints: arrayAt(spec, "taints").map(readTaint),
    unschedulable: trouble !== null,
    allocatable,
    free,
    ...(trouble === null ? {} : { trouble }),
  };
}

/** Why a node takes no pods. Null: it does. */
function troubleOf(node: JsonObject): NodeTrouble | null {
  const notReady = notReadyOf(objectAt(node, "status"));
  const trouble: NodeTrouble = {
    ...(objectAt(node, "spec")["unschedulable"] === true ? { cordoned: true } : {}),
    ...(stringAt(objectAt(node, "metadata"), "deletionTimestamp") === undefined ? {} : { leaving: true }),
    ...(notReady === null ? {} : { notReady }),
  };
  return Object.keys(trouble).length === 0 ? null : trouble;
}

function readTaint(taint: unknown): Taint {
  return {
    key: stringAt(taint, "key") ?? "",
    value: stringAt(taint, "value") ?? "",
    effect: stringAt(taint, "effect") ?? "",
  };
}

/** The most bytes that are kept of the words about a node. */
const REASON_BYTES = 100;
const MESSAGE_BYTES = 500;
/** The end of the year 9999, which the API's times end with. */
const TIME_MS_MAX = 253_402_300_799_999;

/** Null also for a node without the condition Ready: Kubernetes keeps pods off a new node by a taint. */
function notReadyOf(status: JsonObject): Required<NodeTrouble>["notReady"] | null {
  const ready = arrayAt(status, "conditions").find((condition) => stringAt(condition, "type") === "Ready");
  if (ready === undefined || stringAt(ready, "status") === "True") return null;
  const sinceMs = Date.parse(stringAt(ready, "lastTransitionTime") ?? "");
  return {
    reason: foreignText(stringAt(ready, "reason") ?? "", REASON_BYTES),
    message: foreignText(stringAt(ready, "message") ?? "", MESSAGE_BYTES),
    ...(sinceMs >= 0 && sinceMs <= TIME_MS_MAX ? { sinceMs } : {}),
  };
}

/** The part of a pod's spec that decides where it may run; the rest would only make the record larger. */
function schedulingPart(podSpec: JsonObject): JsonObject {
  const kept = ["nodeSelector", "affinity", "tolerations"].filter((member) => podSpec[member] !== undefined);
  return Object.fromEntries(kept.map((member) => [member, podSpec[member]]));
}

function addTo(used: Record<string, number>, requests: Resources): void {
  for (const [resource, amount] of Object.entries(requests)) used[resource] = (used[resource] ?? 0) + amount;
}

function podKey(pod: JsonObject): string {
  const metadata = objectAt(pod, "metadata");
  return `${stringAt(metadata, "namespace") ?? ""}/${stringAt(metadata, "name") ?? ""}`;
}
