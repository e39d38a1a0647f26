import { arrayAt, isJsonObject, type Json, type JsonObject, numberAt, objectAt } from "../../../runtime/json.ts";
import type { PlannedPlace } from "../../job/placement/placement.ts";
import { PREFERRED_TERMS, REQUIRED_TERMS, requireBoth } from "../build-affinity.ts";

/** Above so many alternatives, or so many characters of them, the planned node alone is required. */
const TERMS_MAX = 64;
const TERMS_LENGTH_MAX = 65_536;
/** The largest weight of a preference. */
const WEIGHT_MAX = 100;
/** So much weigh the preferences of a template together at most: less than the planned node. */
const OWN_WEIGHT_MAX = 10;

/**
 * The members of a pod's spec that bring it to its planned node. Nodes that also take it are allowed, so that the pod
 * is not stranded if the planned one goes before it is bound. kube-scheduler scores only some nodes of a large cluster,
 * so a preference alone does not suffice. `nodeName` would skip taints, volumes and device claims.
 */
export function steeredTo(podSpec: JsonObject, { node, others }: Pick<PlannedPlace, "node" | "others">): JsonObject {
  const affinity = objectAt(podSpec, "affinity");
  const nodeAffinity = objectAt(affinity, "nodeAffinity");
  const required = objectAt(nodeAffinity, REQUIRED_TERMS);
  const terms = termsFor(required, [node, ...others], node);
  const preferred = [
    ...lightened(arrayAt(nodeAffinity, PREFERRED_TERMS)),
    { weight: WEIGHT_MAX, preference: onNode(node) },
  ];
  return {
    affinity: {
      ...affinity,
      nodeAffinity: {
        ...nodeAffinity,
        [REQUIRED_TERMS]: { ...required, nodeSelectorTerms: terms },
        [PREFERRED_TERMS]: preferred,
      },
    },
    ...withoutDefaultSpread(podSpec),
  };
}

/** The required terms of a template, each joined with each of these nodes. */
function termsFor(required: JsonObject, nodes: readonly string[], planned: string): readonly Json[] {
  const own = arrayAt(required, "nodeSelectorTerms").length;
  const joined = (names: readonly string[]) => requireBoth(required, { nodeSelectorTerms: names.map(onNode) });
  if (Math.max(1, own) * nodes.length > TERMS_MAX) return joined([planned]);
  const terms = joined(nodes);
  return JSON.stringify(terms).length > TERMS_LENGTH_MAX ? joined([planned]) : terms;
}

/** Kubernetes takes one name in a field's values, so each node is a term of its own. */
function onNode(name: string): JsonObject {
  return { matchFields: [{ key: "metadata.name", operator: "In", values: [name] }] };
}

/** The heaviest preferences of a template in its order, with weights of at least 1 and `OWN_WEIGHT_MAX` together. */
function lightened(own: readonly Json[]): readonly Json[] {
  const weightOf = (term: Json) => numberAt(term, "weight") ?? 0;
  const heaviest = new Set([...own].sort((a, b) => weightOf(b) - weightOf(a)).slice(0, OWN_WEIGHT_MAX));
  const kept = own.filter((term) => heaviest.has(term));
  const sum = kept.reduce((total: number, term) => total + weightOf(term), 0);
  if (sum <= OWN_WEIGHT_MAX) return kept;
  // What is above 1 of each is shared out, so that the least of 1 does not raise the sum.
  const spare = OWN_WEIGHT_MAX - kept.length;
  return kept.map((term) => {
    const weight = 1 + Math.floor((spare * Math.max(0, weightOf(term))) / sum);
    return isJsonObject(term) ? { ...term, weight } : term;
  });
}

/**
 * By default kube-scheduler spreads the pods that one Service selects over the nodes. A constraint of the pod's own
 * turns that off, and one without a selector selects no pod.
 */
function withoutDefaultSpread(podSpec: JsonObject): JsonObject {
  if (arrayAt(podSpec, "topologySpreadConstraints").length > 0) return {};
  const nothing = { maxSkew: 1, topologyKey: "kubernetes.io/hostname", whenUnsatisfiable: "ScheduleAnyway" };
  return { topologySpreadConstraints: [nothing] };
}
