import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, canonicalJson, isJsonObject, objectAt } from "../../runtime/json.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

/** The `affinity` member of a pod spec that also demands these node labels; no member where none is demanded. */
export function requireNodeLabels(podSpec: JsonObject, labels: Readonly<Record<string, string>>): JsonObject {
  const demands = Object.entries(labels)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]): JsonObject => ({ key, operator: "In", values: [value] }));
  return demands.length === 0 ? {} : { affinity: requireOfNodes(objectAt(podSpec, "affinity"), demands) };
}

/**
 * An affinity that also demands all of these of its node. Terms are alternatives, so a demand joins every term that is there; it joins none
 * twice.
 */
export function requireOfNodes(affinity: JsonObject, demands: readonly JsonObject[]): JsonObject {
  if (demands.length === 0) return affinity;
  const nodeAffinity = objectAt(affinity, "nodeAffinity");
  const there = arrayAt(nodeAffinity[REQUIRED], "nodeSelectorTerms");
  const terms =
    there.length === 0
      ? [joinTerm({}, demands)]
      : there.map((term) => (matchesNothing(term) ? term : joinTerm(term, demands)));
  return {
    ...affinity,
    nodeAffinity: { ...nodeAffinity, [REQUIRED]: { ...objectAt(nodeAffinity, REQUIRED), nodeSelectorTerms: terms } },
  };
}

/** An affinity that also prefers nodes that meet all of these; `weight` is 1 to 100. */
export function preferOfNodes(affinity: JsonObject, weight: number, wishes: readonly JsonObject[]): JsonObject {
  const nodeAffinity = objectAt(affinity, "nodeAffinity");
  const added = { weight, preference: { matchExpressions: wishes } };
  return { ...affinity, nodeAffinity: { ...nodeAffinity, [PREFERRED]: [...arrayAt(nodeAffinity, PREFERRED), added] } };
}

/** Two affinities' required node terms in one: every node that is left meets a term of both. Empty lists demand nothing. */
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

/** True if whatever meets a term meets the other: it holds all that the other does. */
function implies(term: Json, other: Json): boolean {
  return ["matchExpressions", "matchFields"].every((member) =>
    arrayAt(other, member).every((one) => includes(arrayAt(term, member), one)),
  );
}

function includes(list: readonly Json[], value: Json): boolean {
  const text = canonicalJson(value);
  return list.some((one) => canonicalJson(one) === text);
}

/** An empty term matches no node; a demand joined to it would make it match some. */
function matchesNothing(term: Json): boolean {
  return arrayAt(term, "matchExpressions").length + arrayAt(term, "matchFields").length === 0;
}

function joinTerm(term: Json, demands: readonly JsonObject[]): JsonObject {
  const there = arrayAt(term, "matchExpressions");
  const added = demands.filter((demand) => !includes(there, demand));
  return { ...(isJsonObject(term) ? term : {}), matchExpressions: [...there, ...added] };
}
