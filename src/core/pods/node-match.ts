import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";

export type Taint = { readonly key: string; readonly value: string; readonly effect: string };

/** The facts of a node that decide whether a pod may run on it, apart from free resources. */
export type NodeFacts = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly unschedulable: boolean;
};

/** Taints that Kubernetes puts on a node and takes off again with the node's state. */
const STATE_TAINTS: ReadonlySet<string> = new Set([
  "node.kubernetes.io/unschedulable",
  "node.kubernetes.io/not-ready",
  "node.kubernetes.io/unreachable",
  "node.kubernetes.io/memory-pressure",
  "node.kubernetes.io/disk-pressure",
  "node.kubernetes.io/pid-pressure",
  "node.kubernetes.io/network-unavailable",
  "node.kubernetes.io/out-of-service",
  "node.cloudprovider.kubernetes.io/uninitialized",
  "node.cloudprovider.kubernetes.io/shutdown",
]);
const UNSCHEDULABLE: Taint = { key: "node.kubernetes.io/unschedulable", value: "", effect: "NoSchedule" };

/** A rule that keeps a pod off a node. */
export type NodeObstacle =
  /** The node lacks a label that the pod selects. */
  | { readonly kind: "label"; readonly key: string; readonly value: string }
  /** The node does not meet an expression of the required node affinity. Without a key: no node can meet it. */
  | {
      readonly kind: "affinity";
      readonly key: string;
      readonly operator: string;
      readonly values: readonly string[];
    }
  /** The pod does not tolerate a taint of the node. */
  | ({ readonly kind: "taint" } & Taint)
  /** The node takes no new pods now: it is cordoned, not ready, under pressure or being deleted. */
  | { readonly kind: "unschedulable" };

/**
 * True if a pod's node selector, required node affinity and tolerations allow the node. Sources: Kubernetes' scheduler
 * plugins NodeAffinity, NodeUnschedulable and TaintToleration. Preferences and inter-pod rules do not count.
 */
export function nodeAllows(podSpec: JsonObject, node: NodeFacts): boolean {
  return (
    missingLabels(stringMapAt(podSpec, "nodeSelector"), node.labels).length === 0 &&
    unmetAffinity(podSpec, node).length === 0 &&
    untolerated(podSpec, node).length === 0
  );
}

/** The node as if it were ready and not cordoned. Its other taints stay. */
export function readyNode<N extends NodeFacts>(node: N): N {
  return { ...node, unschedulable: false, taints: node.taints.filter(({ key }) => !STATE_TAINTS.has(key)) };
}

/**
 * Every rule that keeps a pod off a node; empty if `nodeAllows`. The terms of an affinity are alternatives: only the
 * term with the fewest unmet expressions counts.
 */
export function nodeObstacles(podSpec: JsonObject, node: NodeFacts): readonly NodeObstacle[] {
  return [
    ...missingLabels(stringMapAt(podSpec, "nodeSelector"), node.labels),
    ...unmetAffinity(podSpec, node),
    ...untolerated(podSpec, node),
  ];
}

/** The required labels that a node does not carry. */
export function missingLabels(
  required: Readonly<Record<string, string>>,
  labels: Readonly<Record<string, string>>,
): readonly Extract<NodeObstacle, { readonly kind: "label" }>[] {
  return Object.entries(required)
    .filter(([key, value]) => labels[key] !== value)
    .map(([key, value]) => ({ kind: "label", key, value }));
}

function unmetAffinity(podSpec: JsonObject, node: NodeFacts): readonly NodeObstacle[] {
  const nodeAffinity = objectAt(objectAt(podSpec, "affinity"), "nodeAffinity");
  const required = nodeAffinity["requiredDuringSchedulingIgnoredDuringExecution"];
  if (required === undefined || required === null) return [];
  const terms = arrayAt(required, "nodeSelectorTerms").map((term) => unmetInTerm(term, node));
  return terms.reduce((least, unmet) => (unmet.length < least.length ? unmet : least), terms[0] ?? [NO_NODE]);
}

/** Of a term, or a list of terms, that is empty: it matches no node. */
const NO_NODE: NodeObstacle = { kind: "affinity", key: "", operator: "", values: [] };

/** True if a node meets a term of a node affinity. An empty term matches no node. */
export function termMatches(term: JsonObject, node: NodeFacts): boolean {
  return unmetInTerm(term, node).length === 0;
}

/** True if a pod tolerates a taint, whatever its effect. */
export function toleratesTaint(podSpec: JsonObject, taint: Taint): boolean {
  return arrayAt(podSpec, "tolerations").some((toleration) => tolerates(toleration, taint));
}

/** Terms are alternatives. All expressions of a term must hold. An empty term matches nothing. */
function unmetInTerm(term: Json, node: NodeFacts): readonly NodeObstacle[] {
  const byLabel = arrayAt(term, "matchExpressions");
  const byField = arrayAt(term, "matchFields");
  if (byLabel.length + byField.length === 0) return [NO_NODE];
  return [
    ...byLabel.filter((expression) => !expressionMatches(expression, node.labels)),
    ...byField.filter((expression) => !expressionMatches(expression, { "metadata.name": node.name })),
  ].map(unmetExpression);
}

function unmetExpression(expression: Json): NodeObstacle {
  return {
    kind: "affinity",
    key: stringAt(expression, "key") ?? "",
    operator: stringAt(expression, "operator") ?? "",
    values: arrayAt(expression, "values").map(String),
  };
}

function expressionMatches(expression: Json, labels: Readonly<Record<string, string>>): boolean {
  const actual = labels[stringAt(expression, "key") ?? ""];
  const values = arrayAt(expression, "values");
  switch (stringAt(expression, "operator")) {
    case "In":
      return actual !== undefined && values.includes(actual);
    case "NotIn":
      return actual === undefined || !values.includes(actual);
    case "Exists":
      return actual !== undefined;
    case "DoesNotExist":
      return actual === undefined;
    case "Gt":
      return actual !== undefined && Number(actual) > Number(values[0]);
    case "Lt":
      return actual !== undefined && Number(actual) < Number(values[0]);
    default:
      return false;
  }
}

/** Taints of the node's state count as one obstacle: they come and go together. */
function untolerated(podSpec: JsonObject, node: NodeFacts): readonly NodeObstacle[] {
  const tolerations = arrayAt(podSpec, "tolerations");
  const taints = (node.unschedulable ? [...node.taints, UNSCHEDULABLE] : node.taints)
    .filter((taint) => taint.effect === "NoSchedule" || taint.effect === "NoExecute")
    .filter((taint) => !tolerations.some((toleration) => tolerates(toleration, taint)));
  const lasting = taints.filter(({ key }) => !STATE_TAINTS.has(key));
  const obstacles = lasting.map((taint): NodeObstacle => ({ kind: "taint", ...taint }));
  return lasting.length < taints.length ? [...obstacles, { kind: "unschedulable" }] : obstacles;
}

function tolerates(toleration: Json, taint: Taint): boolean {
  const effect = stringAt(toleration, "effect") ?? "";
  const key = stringAt(toleration, "key") ?? "";
  if (effect !== "" && effect !== taint.effect) return false;
  if (key !== "" && key !== taint.key) return false;
  if (stringAt(toleration, "operator") === "Exists") return true;
  return key !== "" && (stringAt(toleration, "value") ?? "") === taint.value;
}
