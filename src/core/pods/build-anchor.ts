import type { JsonObject } from "../../runtime/json.ts";
import { anchorName } from "../job/names.ts";
import { admissionLabels, type Ownership } from "./build-labels.ts";

/** The manifest of an admission's anchor: an empty ConfigMap whose uid owns everything else of the admission. */
export function buildAnchor(ownership: Ownership): JsonObject {
  const { job, admission } = ownership;
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: anchorName(job.name, admission),
      namespace: job.namespace,
      labels: admissionLabels(ownership),
    },
    data: { job: `${job.namespace}/${job.name}`, admission: String(admission) },
  };
}
