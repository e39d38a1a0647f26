/**
 * Which of the nodes that take a pod kube-scheduler prefers. Sources: its plugins NodeAffinity, NodeResourcesFit
 * (LeastAllocated), PodTopologySpread with the default constraints, and TaintToleration, with their default weights.
 */
import { PREFERRED_TERMS, requiredNodeTerms } from "../../../core/pods/build-affinity.ts";
import { type NodeFacts, termMatches, toleratesTaint } from "../../../core/pods/node-match.ts";
import type { Resources } from "../../../core/pods/resources.ts";
import { arrayAt, type Json, type JsonObject, numberAt, objectAt, stringAt } from "../../../runtime/json.ts";

const SCORE_MAX = 100;
const WEIGHT = { nodeAffinity: 2, leastAllocated: 1, spread: 2, taints: 3 };
/** A pod that requests none of these counts as if it requested so much. In thousandths. */
const LEAST_REQUEST: Resources = { cpu: 100, memory: 200 * 1024 * 1024 * 1000 };

/** A node that takes the pod. */
export type CandidateNode = {
  readonly facts: NodeFacts;
  readonly allocatable: Resources;
  /** The requests of its pods as LeastAllocated counts them. */
  readonly requested: Resources;
  /**
   * How many pods on it a Service selects that selects this pod too. 0 if the pod has a spread constraint of its own,
   * which turns the default one off.
   */
  readonly alike: number;
};

/** Amounts of processors and memory as LeastAllocated counts them. */
export function scoredRequests(requests: Resources): Resources {
  return Object.fromEntries(
    Object.entries(LEAST_REQUEST).map(([name, least]) => [
      name,
      (requests[name] ?? 0) > 0 ? (requests[name] ?? 0) : least,
    ]),
  );
}

/** The preferred node. Of equal ones the first, where kube-scheduler draws one. Null: there are no nodes. */
export function preferredNode<N extends CandidateNode>(podSpec: JsonObject, nodes: readonly N[]): N | null {
  const wished = normalized(nodes.map((node) => preference(podSpec, node.facts)));
  const disliked = normalized(nodes.map((node) => softTaints(podSpec, node.facts)));
  const alike = normalized(nodes.map((node) => node.alike));
  let best: { readonly node: N; readonly score: number } | null = null;
  for (const [at, node] of nodes.entries()) {
    const score =
      WEIGHT.nodeAffinity * (wished[at] ?? 0) +
      WEIGHT.taints * (SCORE_MAX - (disliked[at] ?? 0)) +
      WEIGHT.spread * (SCORE_MAX - (alike[at] ?? 0)) +
      WEIGHT.leastAllocated * leastAllocated(node);
    if (best === null || score > best.score) best = { node, score };
  }
  return best?.node ?? null;
}

/** Scales scores so that the highest is `SCORE_MAX`. */
function normalized(scores: readonly number[]): readonly number[] {
  let most = 0;
  for (const score of scores) most = Math.max(most, score);
  return most === 0 ? scores : scores.map((score) => Math.floor((score * SCORE_MAX) / most));
}

/** The weights of the preferred node terms that a node meets. */
function preference(podSpec: JsonObject, node: NodeFacts): number {
  const nodeAffinity = objectAt(objectAt(podSpec, "affinity"), "nodeAffinity");
  const terms = arrayAt(nodeAffinity, PREFERRED_TERMS);
  const weightOf = (term: Json) => {
    return termMatches(objectAt(term, "preference"), node) ? (numberAt(term, "weight") ?? 0) : 0;
  };
  return terms.reduce((sum: number, term) => sum + weightOf(term), 0);
}

/** The taints of a node that the pod should rather avoid. */
function softTaints(podSpec: JsonObject, { taints }: NodeFacts): number {
  const soft = taints.filter(({ effect }) => effect === "PreferNoSchedule");
  return soft.filter((taint) => !toleratesTaint(podSpec, taint)).length;
}

/** The free part of processors and memory, 0 to `SCORE_MAX`. */
function leastAllocated({ allocatable, requested }: CandidateNode): number {
  const parts = Object.keys(LEAST_REQUEST).map((name) => {
    const total = allocatable[name] ?? 0;
    return total === 0 ? 0 : Math.max(0, 1 - (requested[name] ?? 0) / total);
  });
  return (SCORE_MAX * parts.reduce((sum, part) => sum + part, 0)) / parts.length;
}

/** The names of the only nodes that a pod may run on, as its required affinity lists them. Null: it lists none. */
export function namedNodes(podSpec: JsonObject): readonly string[] | null {
  const names = requiredNodeTerms(podSpec).map(nameIn);
  return names.length === 0 || names.includes(null) ? null : [...new Set(names.flatMap((name) => name ?? []))];
}

function nameIn(term: Json): string | null {
  const byName = arrayAt(term, "matchFields").find((one) => {
    return stringAt(one, "key") === "metadata.name" && stringAt(one, "operator") === "In";
  });
  const [name] = arrayAt(byName, "values");
  return typeof name === "string" ? name : null;
}
