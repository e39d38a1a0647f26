import { arrayAt, type JsonObject, objectAt } from "../../runtime/json.ts";
import type { FieldError } from "../job/sent.ts";

const BYTES_MAX = 1024 * 1024;
/** Pods have a handful of each. A pod policy compares each one with up to hundreds of entries. */
const ITEMS_MAX = { containers: 128, initContainers: 128, volumes: 1_000, tolerations: 1_000 };

/** The labels of a pod's flavors join each of these terms. */
const NODE_TERMS = { of: "requiredDuringSchedulingIgnoredDuringExecution", max: 1_000 };

/** The errors of a template that is too large to be checked any further. Paths start at the template. */
export function checkTemplateSize(template: JsonObject): readonly FieldError[] {
  const bytes = Buffer.byteLength(JSON.stringify(template));
  if (bytes > BYTES_MAX) return [{ path: "", message: `must be at most ${BYTES_MAX} bytes of JSON, but has ${bytes}` }];
  const spec = objectAt(template, "spec");
  const required = objectAt(objectAt(objectAt(spec, "affinity"), "nodeAffinity"), NODE_TERMS.of);
  const terms = arrayAt(required, "nodeSelectorTerms").length;
  if (terms > NODE_TERMS.max) {
    const path = `spec.affinity.nodeAffinity.${NODE_TERMS.of}.nodeSelectorTerms`;
    return [{ path, message: `must have at most ${NODE_TERMS.max} items, but has ${terms}` }];
  }
  return Object.entries(ITEMS_MAX).flatMap(([list, max]) => {
    const count = arrayAt(spec, list).length;
    return count <= max ? [] : [{ path: `spec.${list}`, message: `must have at most ${max} items, but has ${count}` }];
  });
}
