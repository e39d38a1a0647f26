import { compareText } from "../../runtime/compare-text.ts";
import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, canonicalJson, isJsonObject, objectAt } from "../../runtime/json.ts";

/** The members of a node affinity. */
export const REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution";
export const PREFERRED_TERMS = "preferredDuringSchedulingIgnoredDuringExecution";

/** The required node terms of a pod. Empty: it has none. */
export function requiredNodeTerms(podSpec: JsonObject): readonly Json[] {
  const nodeAffinity = objectAt(objectAt(podSpec, "affinity"), "nodeAffinity");
  return arrayAt(nodeAffinity[REQUIRED_TERMS], "nodeSelectorTerms");
}

/** The `affinity` member of a pod spec with these node labels required too. Empty without an affinity and labels. */
export function requireNodeLabels(podSpec: JsonObject, labels: Readonly<Record<string, string>>): JsonObject {
  const demands = Object.entries(labels)
    .sort(([a], [b]) => compareText(a, b))
    .map(([key, value]): JsonObject => ({ key, operator: "In", values: [value] }));
  return demands.length === 0 ? {} : { affinity: requireOfNodes(objectAt(podSpec, "affinity"), demands) };
}

/**
 * Adds node requirements to an affinity. Terms are alternatives, so each requirement joins every existing term, once.
 */
export function requireOfNodes(affinity: JsonObject, demands: readonly JsonObject[]): JsonObject {
  if (demands.length === 0) return affinity;
  const nodeAffinity = objectAt(affinity, "nodeAffinity");
  const own = arrayAt(nodeAffinity[REQUIRED_TERMS], "nodeSelectorTerms");
  const terms =
    own.length === 0
      ? [joinTerm({}, demands)]
      : own.map((term) => (matchesNothing(term) ? term : joinTerm(term, demands)));
  return {
    ...affinity,
    nodeAffinity: {
      ...nodeAffinity,
      [REQUIRED_TERMS]: { ...objectAt(nodeAffinity, REQUIRED_TERMS), nodeSelectorTerms: terms },
    },
  };
}

/** Adds preferred node requirements to an affinity. `weight` is 1 to 100. */
export function preferOfNodes(affinity: JsonObject, weight: number, wishes: readonly JsonObject[]): JsonObject {
  const nodeAffinity = objectAt(affinity, "nodeAffinity");
  const added = { weight, preference: { matchExpressions: wishes } };
  return {
    ...affinity,
    nodeAffinity: { ...nodeAffinity, [PREFERRED_TERMS]: [...arrayAt(nodeAffinity, PREFERRED_TERMS), added] },
  };
}

/** True if an affinity has these preferred requirements already, by this weight. */
export function prefersOfNodes(affinity: JsonObject, weight: number, wishes: readonly JsonObject[]): boolean {
  const own = arrayAt(objectAt(affinity, "nodeAffinity"), PREFERRED_TERMS);
  return includes(own, { weight, preference: { matchExpressions: wishes } });
}

/**
 * Combines the required node terms of two affinities: a node must meet a term of both. An empty list requires nothing.
 */
export function requireBoth(first: JsonObject, second: JsonObject): readonly Json[] {
  const ours = arrayAt(first, "nodeSelectorTerms");
  const theirs = arrayAt(second, "nodeSelectorTerms");
  if (ours.length === 0 || theirs.length === 0) return ours.length === 0 ? theirs : ours;
  const base = ours.filter((term) => !matchesNothing(term));
  if (base.length === 0) return ours;
  return theirs.flatMap((term) => {
    if (matchesNothing(term) || base.some((one) => implies(term, one))) return [term];
    return base.map((one) => joinTerms(one, term));
  });
}

function joinTerms(one: Json, other: Json): JsonObject {
  const joined = joinTerm(one, arrayAt(other, "matchExpressions").filter(isJsonObject));
  const fields = [...arrayAt(one, "matchFields"), ...arrayAt(other, "matchFields")];
  return fields.length === 0 ? joined : { ...joined, matchFields: fields };
}

/** True if every node that meets a term also meets the other: the term holds all requirements of the other. */
function implies(term: Json, other: Json): boolean {
  return ["matchExpressions", "matchFields"].every((member) =>
    arrayAt(other, member).every((one) => includes(arrayAt(term, member), one)),
  );
}

function includes(list: readonly Json[], value: Json): boolean {
  const text = canonicalJson(value);
  return list.some((one) => canonicalJson(one) === text);
}

/** An empty term matches no node. Joining a requirement to it would make it match some. */
function matchesNothing(term: Json): boolean {
  return arrayAt(term, "matchExpressions").length + arrayAt(term, "matchFields").length === 0;
}

function joinTerm(term: Json, demands: readonly JsonObject[]): JsonObject {
  const own = arrayAt(term, "matchExpressions");
  const added = demands.filter((demand) => !includes(own, demand));
  return { ...(isJsonObject(term) ? term : {}), matchExpressions: [...own, ...added] };
}
