import { type JsonObject, objectAt } from "../../../runtime/json.ts";

/**
 * Whether the pod has users of its own, so that its root is not the node's. Kubernetes relaxes some controls for such
 * pods.
 */
export function hasOwnUsers(spec: JsonObject): boolean {
  return spec["hostUsers"] === false;
}

/** Whether the pod runs on Windows, which has neither seccomp nor capabilities. */
export function isForWindows(spec: JsonObject): boolean {
  return objectAt(spec, "os")["name"] === "windows";
}
