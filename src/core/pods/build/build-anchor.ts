import type { JsonObject } from "../../../runtime/json.ts";
import { LABEL } from "../../job/labels.ts";
import { anchorName } from "../../job/names.ts";
import { admissionLabels, type Ownership } from "./build-labels.ts";
import type { GangScheduler } from "./pod-group.ts";

/**
 * The manifest of an admission's anchor: an empty ConfigMap that owns all other objects of the admission. It names the
 * gang scheduler of the admission, which stays the same even if the cluster gets another one.
 */
export function buildAnchor(ownership: Ownership, scheduler: GangScheduler | null): JsonObject {
  const { job, admission } = ownership;
  const marks = scheduler === null ? {} : { [LABEL.gangScheduler]: scheduler };
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: anchorName(job.name, admission),
      namespace: job.namespace,
      labels: { ...admissionLabels(ownership), ...marks },
    },
    data: { job: `${job.namespace}/${job.name}`, admission: String(admission) },
  };
}
