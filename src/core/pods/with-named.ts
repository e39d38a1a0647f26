import { arrayAt, isJsonObject, type Json, type JsonObject, stringAt } from "../../runtime/json.ts";

/** The list of an object with items added. An item replaces the one with the same key, or is added at the end. */
export function withNamed(
  object: JsonObject,
  member: string,
  items: readonly JsonObject[],
  key = "name",
): { readonly [member: string]: readonly Json[] } {
  if (items.length === 0) return {};
  const byKey = new Map(items.map((item) => [stringAt(item, key), item]));
  const own = arrayAt(object, member);
  const keys = new Set(own.map((one) => stringAt(one, key)));
  const replaced = own.map((one) => byKey.get(stringAt(one, key)) ?? one);
  return { [member]: [...replaced, ...items.filter((item) => !keys.has(stringAt(item, key)))] };
}

/** The pod spec with every container and init container changed. */
export function mapContainers(
  podSpec: JsonObject,
  change: (container: JsonObject, list: "containers" | "initContainers") => JsonObject,
): JsonObject {
  const lists = (["containers", "initContainers"] as const).filter((list) => Array.isArray(podSpec[list]));
  const changed = lists.map((list) => [
    list,
    arrayAt(podSpec, list).map((container) => (isJsonObject(container) ? change(container, list) : container)),
  ]);
  return { ...podSpec, ...Object.fromEntries(changed) };
}
