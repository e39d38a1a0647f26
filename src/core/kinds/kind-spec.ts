import type { JsonObject } from "../../runtime/json.ts";

/** The JSON Schema of a kind spec that has only these members. */
export function kindSpecSchema(kind: string, properties: JsonObject = {}): JsonObject {
  return { title: kind, type: "object", additionalProperties: false, properties };
}

/** A whole number of at least `minimum`, and at most `maximum` if it is given. */
export function integerSchema(
  description: string,
  bounds: { readonly minimum: number; readonly maximum?: number },
): JsonObject {
  return { type: "integer", ...bounds, description };
}

/** Settings of Kubeflow's autoscaler. Manifests have them, so they are accepted, but ignored. */
export const METRICS: JsonObject = {
  type: "array",
  items: { type: "object" },
  description: "Metrics for an autoscaler.",
  "x-ignored": "Gangway creates no autoscaler",
};
