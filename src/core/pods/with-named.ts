import { arrayAt, isJsonObject, type Json, type JsonObject, stringAt } from "../../runtime/json.ts";

/**
 * The list of an object with items added. An item takes the place of the first one with the same key, or is added at
 * the end. So each key of the items is in the list once. Objects without a list of their own share one, so that many of
 * them cost as much as one to make and to measure.
 */
export function withNamed(
  object: JsonObject,
  member: string,
  items: readonly JsonObject[],
  key = "name",
): { readonly [member: string]: readonly Json[] } {
  if (items.length === 0) return {};
  const own = arrayAt(object, member);
  if (own.length === 0) return { [member]: items };
  const byKey = new Map(items.map((item) => [stringAt(item, key), item]));
  const left = new Map(byKey);
  const kept = own.flatMap((one): readonly Json[] => {
    const name = stringAt(one, key);
    const item = byKey.get(name);
    if (item === undefined) return [one];
    return left.delete(name) ? [item] : [];
  });
  return { [member]: [...kept, ...left.values()] };
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
