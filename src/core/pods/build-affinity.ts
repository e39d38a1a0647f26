import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, isJsonObject, objectAt } from "../../runtime/json.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";

/**
 * The `affinity` member of a pod spec that also demands these node labels; no member where none is demanded. Terms are alternatives, so
 * the demand joins every term that is there.
 */
export function requireNodeLabels(podSpec: JsonObject, labels: Readonly<Record<string, string>>): JsonObject {
  const demands = Object.entries(labels)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]): JsonObject => ({ key, operator: "In", values: [value] }));
  if (demands.length === 0) return {};
  const affinity = objectAt(podSpec, "affinity");
  const nodeAffinity = objectAt(affinity, "nodeAffinity");
  const required = nodeAffinity[REQUIRED];
  const terms = isJsonObject(required)
    ? arrayAt(required, "nodeSelectorTerms").map((term) => (matchesNothing(term) ? term : joinTerm(term, demands)))
    : [joinTerm({}, demands)];
  return {
    affinity: {
      ...affinity,
      nodeAffinity: { ...nodeAffinity, [REQUIRED]: { ...objectAt(nodeAffinity, REQUIRED), nodeSelectorTerms: terms } },
    },
  };
}

/** An empty term matches no node; a demand joined to it would make it match some. */
function matchesNothing(term: Json): boolean {
  return arrayAt(term, "matchExpressions").length + arrayAt(term, "matchFields").length === 0;
}

function joinTerm(term: Json, demands: readonly JsonObject[]): Json {
  return { ...(isJsonObject(term) ? term : {}), matchExpressions: [...arrayAt(term, "matchExpressions"), ...demands] };
}
