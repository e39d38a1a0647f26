import { compareText } from "../../runtime/compare-text.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { arrayAt, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import type { Taint } from "../pods/node-match.ts";
import { type PodView, podView } from "../pods/pod-view.ts";
import { podRequests, type Resources, readResources } from "../pods/resources.ts";
import type { BoundMember, ClusterCapacity, NodeCapacity, UnboundPod } from "./snapshot.ts";

/**
 * A cluster's capacity from the JSON of all its nodes and pods, as the API server sends them. Pods that have ended take
 * no room; pods that are being deleted take theirs until they have ended. A node that is not ready counts as
 * unschedulable. The order of the result does not depend on the order of the arguments.
 */
export function summarize(nodes: readonly JsonObject[], pods: readonly JsonObject[]): ClusterCapacity {
  const used = new Map<string, Record<string, number>>();
  const seen: BoundMember[] = [];
  const unbound: { readonly key: string; readonly pod: UnboundPod }[] = [];
  for (const pod of pods) {
    const view = podView(pod);
    if (view.phase === "Succeeded" || view.phase === "Failed") continue;
    const podSpec = objectAt(pod, "spec");
    const requests = podRequests(podSpec);
    if (view.nodeName !== "") {
      addTo(used, view.nodeName, requests);
      seen.push(...memberOf(view));
    } else if (view.jobUid === null && !view.deleting) {
      unbound.push({ key: podKey(pod), pod: { podSpec: schedulingPart(podSpec), requests } });
    }
  }
  return {
    nodes: nodes.map((node) => nodeCapacity(node, used)).sort((a, b) => compareText(a.name, b.name)),
    seen: seen.sort(compareSeen),
    unbound: unbound.sort((a, b) => compareText(a.key, b.key)).map(({ pod }) => pod),
  };
}

/** The pod's member; empty if Gangway did not create the pod. */
function memberOf({ jobUid, admission, role, index }: PodView): readonly BoundMember[] {
  return jobUid === null || role === null || index === null ? [] : [{ jobUid, admission, role, index }];
}

function nodeCapacity(node: JsonObject, used: ReadonlyMap<string, Resources>): NodeCapacity {
  const metadata = objectAt(node, "metadata");
  const spec = objectAt(node, "spec");
  const status = objectAt(node, "status");
  const name = stringAt(metadata, "name") ?? "";
  const allocatable = readResources(objectAt(status, "allocatable"));
  const taken = used.get(name) ?? {};
  const free = Object.fromEntries(
    Object.entries(allocatable).map(([resource, amount]) => [resource, amount - (taken[resource] ?? 0)]),
  );
  const leaving = stringAt(metadata, "deletionTimestamp") !== undefined;
  return {
    name,
    labels: stringMapAt(metadata, "labels"),
    taints: arrayAt(spec, "taints").map(readTaint),
    unschedulable: spec["unschedulable"] === true || leaving || !isReady(status),
    allocatable,
    free,
  };
}

function readTaint(taint: unknown): Taint {
  return {
    key: stringAt(taint, "key") ?? "",
    value: stringAt(taint, "value") ?? "",
    effect: stringAt(taint, "effect") ?? "",
  };
}

/** True also for a node without the condition Ready: Kubernetes keeps pods off a new node by a taint. */
function isReady(status: JsonObject): boolean {
  const ready = arrayAt(status, "conditions").find((condition) => stringAt(condition, "type") === "Ready");
  return ready === undefined || stringAt(ready, "status") === "True";
}

/** The part of a pod's spec that decides where it may run; the rest would only make the record larger. */
function schedulingPart(podSpec: JsonObject): JsonObject {
  const kept = ["nodeSelector", "affinity", "tolerations"].filter((member) => podSpec[member] !== undefined);
  return Object.fromEntries(kept.map((member) => [member, podSpec[member]]));
}

function addTo(used: Map<string, Record<string, number>>, node: string, requests: Resources): void {
  const sums = used.get(node) ?? {};
  for (const [resource, amount] of Object.entries(requests)) sums[resource] = (sums[resource] ?? 0) + amount;
  used.set(node, sums);
}

function podKey(pod: JsonObject): string {
  const metadata = objectAt(pod, "metadata");
  return `${stringAt(metadata, "namespace") ?? ""}/${stringAt(metadata, "name") ?? ""}`;
}

function compareSeen(a: BoundMember, b: BoundMember): number {
  const byAdmission = compareText(a.jobUid, b.jobUid) || a.admission - b.admission;
  return byAdmission || compareText(a.role, b.role) || a.index - b.index;
}
