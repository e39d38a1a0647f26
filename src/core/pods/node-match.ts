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

const UNSCHEDULABLE: Taint = { key: "node.kubernetes.io/unschedulable", value: "", effect: "NoSchedule" };

/**
 * True if a pod's node selector, required node affinity and tolerations allow the node. Sources: Kubernetes' scheduler
 * plugins NodeAffinity, NodeUnschedulable and TaintToleration. Preferences and inter-pod rules do not count.
 */
export function nodeAllows(podSpec: JsonObject, node: NodeFacts): boolean {
  return selectorMatches(podSpec, node) && affinityMatches(podSpec, node) && taintsTolerated(podSpec, node);
}

function selectorMatches(podSpec: JsonObject, node: NodeFacts): boolean {
  return Object.entries(stringMapAt(podSpec, "nodeSelector")).every(([key, value]) => node.labels[key] === value);
}

function affinityMatches(podSpec: JsonObject, node: NodeFacts): boolean {
  const nodeAffinity = objectAt(objectAt(podSpec, "affinity"), "nodeAffinity");
  const required = nodeAffinity["requiredDuringSchedulingIgnoredDuringExecution"];
  if (required === undefined || required === null) return true;
  return arrayAt(required, "nodeSelectorTerms").some((term) => termMatches(term, node));
}

/** Terms are alternatives. All expressions of a term must hold. An empty term matches nothing. */
function termMatches(term: Json, node: NodeFacts): boolean {
  const byLabel = arrayAt(term, "matchExpressions");
  const byField = arrayAt(term, "matchFields");
  if (byLabel.length + byField.length === 0) return false;
  return (
    byLabel.every((expression) => expressionMatches(expression, node.labels)) &&
    byField.every((expression) => expressionMatches(expression, { "metadata.name": node.name }))
  );
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

function taintsTolerated(podSpec: JsonObject, node: NodeFacts): boolean {
  const tolerations = arrayAt(podSpec, "tolerations");
  const taints = node.unschedulable ? [...node.taints, UNSCHEDULABLE] : node.taints;
  return taints
    .filter((taint) => taint.effect === "NoSchedule" || taint.effect === "NoExecute")
    .every((taint) => tolerations.some((toleration) => tolerates(toleration, taint)));
}

function tolerates(toleration: Json, taint: Taint): boolean {
  const effect = stringAt(toleration, "effect") ?? "";
  const key = stringAt(toleration, "key") ?? "";
  if (effect !== "" && effect !== taint.effect) return false;
  if (key !== "" && key !== taint.key) return false;
  if (stringAt(toleration, "operator") === "Exists") return true;
  return key !== "" && (stringAt(toleration, "value") ?? "") === taint.value;
}
