import { LABEL } from "../../core/job/labels.ts";
import type { Json, JsonObject } from "../../runtime/json.ts";
import { canonicalJson, isJsonObject, objectAt, stringMapAt } from "../../runtime/json.ts";

/** The resources of parts: objects that a kind needs beside pods and services. */
export const PARTS: Readonly<Record<string, string>> = {
  ConfigMap: "configmaps",
  ServiceAccount: "serviceaccounts",
  Role: "roles",
  RoleBinding: "rolebindings",
  Secret: "secrets",
  PersistentVolumeClaim: "persistentvolumeclaims",
};

/**
 * The merge patch that gives a part its wanted content. Null: it has that content, or was made from a newer record, so
 * that a late call does not undo a newer one. Fields that the manifest does not name, such as those that API servers
 * add, stay.
 */
export function partPatch(found: JsonObject, wanted: JsonObject): JsonObject | null {
  if (versionOf(found) > versionOf(wanted)) return null;
  const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...content } = wanted;
  const changes = Object.entries(content).filter(([member, value]) => !isSame(found[member], value));
  if (changes.length === 0) return null;
  const changed = Object.fromEntries(changes.map(([member, value]) => [member, replacing(found[member], value)]));
  return { ...changed, metadata: { annotations: objectAt(objectAt(wanted, "metadata"), "annotations") } };
}

/** The version of the job's record that a part was made from. 0: the part does not say. */
function versionOf(part: JsonObject): number {
  const text = stringMapAt(objectAt(part, "metadata"), "annotations")[LABEL.jobVersion] ?? "";
  return /^\d+$/.test(text) ? Number(text) : 0;
}

function isSame(found: Json | undefined, wanted: Json | undefined): boolean {
  return canonicalJson(found) === canonicalJson(wanted);
}

/** A merge patch keeps members that it does not name, so members that are no longer wanted are set to null. */
function replacing(found: Json | undefined, wanted: Json | undefined): Json | undefined {
  if (!isJsonObject(found) || !isJsonObject(wanted)) return wanted;
  const gone = Object.keys(found).filter((member) => !Object.hasOwn(wanted, member));
  return { ...Object.fromEntries(gone.map((member) => [member, null])), ...wanted };
}
