/**
 * Merges a patch into a JobSet as Kubernetes' strategic merge patch does: objects member by member, and lists whose
 * items have names item by item. Null removes a member.
 */
import { isJsonObject, type Json, type JsonObject, stringAt } from "../../../runtime/json.ts";

/** The member that names an item, by the list. Other lists are replaced. */
const KEYS: Readonly<Record<string, string>> = {
  containers: "name",
  initContainers: "name",
  replicatedJobs: "name",
  volumes: "name",
  env: "name",
  imagePullSecrets: "name",
  schedulingGates: "name",
  volumeMounts: "mountPath",
  topologySpreadConstraints: "topologyKey",
  hostAliases: "ip",
};

/** The object with the patch. Items keep their order, and new ones follow. */
export function merged(base: JsonObject, patch: JsonObject): JsonObject {
  const result: Record<string, Json | undefined> = { ...base };
  for (const [member, value] of Object.entries(patch)) {
    if (value === undefined) continue;
    if (value === null) delete result[member];
    else result[member] = mergedValue(member, base[member] ?? null, value);
  }
  return result;
}

function mergedValue(member: string, base: Json, patch: Json): Json {
  if (isJsonObject(patch)) return merged(isJsonObject(base) ? base : {}, patch);
  const key = KEYS[member];
  if (!Array.isArray(patch) || key === undefined) return patch;
  return mergedList(Array.isArray(base) ? base : [], patch, key);
}

function mergedList(base: readonly Json[], patch: readonly Json[], key: string): readonly Json[] {
  const items = new Map<string, Json>();
  const nameOf = (item: Json, at: number) => stringAt(item, key) ?? `#${at}`;
  for (const [at, item] of base.entries()) items.set(nameOf(item, at), item);
  for (const [at, item] of patch.entries()) {
    const name = nameOf(item, base.length + at);
    const before = items.get(name);
    items.set(name, isJsonObject(item) ? merged(isJsonObject(before) ? before : {}, item) : item);
  }
  return [...items.values()];
}
