import type { JsonObject } from "../../runtime/json.ts";

/** The JSON Schema of a kind spec with these members and no others. */
export function kindSpecSchema(kind: string, properties: JsonObject = {}): JsonObject {
  return { title: kind, type: "object", additionalProperties: false, properties };
}

/** A whole number from `minimum` on, up to `maximum` if that is given. */
export function integerSchema(
  description: string,
  bounds: { readonly minimum: number; readonly maximum?: number },
): JsonObject {
  return { type: "integer", ...bounds, description };
}

/** What an autoscaler of Kubeflow's would go by: manifests have it, and are to be taken as they are. */
export const METRICS: JsonObject = {
  type: "array",
  items: { type: "object" },
  description: "Metrics of an autoscaler.",
  "x-ignored": "no autoscaler is made",
};
