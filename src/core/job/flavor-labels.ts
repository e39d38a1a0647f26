/**
 * Maps of flavors, and of their node labels. Such a map has a member for each resource of which all replica types have
 * the same flavor, `nvidia.com/gpu`. If types have different flavors of a resource, it has one for each type instead,
 * `Worker:nvidia.com/gpu`. Neither the names of types nor those of resources have a colon.
 */

/**
 * The node labels that the flavor of each resource demands, `nvidia.com/gpu` → labels of its nodes, or that of each
 * replica type: a map as this file begins with.
 */
export type FlavorLabels = Readonly<Record<string, Readonly<Record<string, string>>>>;

/**
 * The node labels that a pod must have: those of the flavors of the resources that it requests. A launcher that
 * requests no GPU may run on a node without GPUs, as a pod set of Kueue does. Expects the labels of its replica type.
 */
export function podNodeLabels(
  requests: Readonly<Record<string, number>>,
  flavorLabels: FlavorLabels,
): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {};
  for (const [resource, demanded] of Object.entries(flavorLabels)) {
    if ((requests[resource] ?? 0) > 0) Object.assign(labels, demanded);
  }
  return labels;
}

/** The node labels of all flavors together. If two have different values of a label, the last one's. */
export function allNodeLabels(flavorLabels: FlavorLabels): Readonly<Record<string, string>> {
  return Object.assign({}, ...Object.values(flavorLabels));
}

/** The member of one replica type. */
export function roleKey(role: string, resource: string): string {
  return `${role}:${resource}`;
}

/** The replica type and the resource of a member. Role null: it is for all types. */
export function partsOf(key: string): { readonly role: string | null; readonly resource: string } {
  const at = key.indexOf(":");
  return at < 0 ? { role: null, resource: key } : { role: key.slice(0, at), resource: key.slice(at + 1) };
}

/** True if replica types have different flavors of a resource. */
export function isByRole(map: Readonly<Record<string, unknown>>): boolean {
  for (const key in map) if (key.includes(":")) return true;
  return false;
}

/** The part of a map for one replica type, by resource. The map itself if all types have the same flavors. */
export function ofRole<T>(map: Readonly<Record<string, T>>, role: string): Readonly<Record<string, T>> {
  if (!isByRole(map)) return map;
  const own = Object.entries(map).flatMap(([key, value]) => {
    const parts = partsOf(key);
    return parts.role === null || parts.role === role ? [[parts.resource, value] as const] : [];
  });
  return Object.fromEntries(own);
}

/** The replica types that a map names, in its order, each once. Empty: all types have the same flavors. */
export function rolesIn(map: Readonly<Record<string, unknown>>): readonly string[] {
  return [...new Set(Object.keys(map).flatMap((key) => partsOf(key).role ?? []))];
}

/**
 * The flavors as answers show them: of each resource that of the first type, and all of them by type if types have
 * different ones.
 */
export function shownFlavors(flavors: Readonly<Record<string, string>>) {
  const first: Record<string, string> = {};
  for (const [key, flavor] of Object.entries(flavors)) first[partsOf(key).resource] ??= flavor;
  const roleFlavors = rolesIn(flavors).map((role) => [role, { flavors: ofRole(flavors, role) }] as const);
  return { flavors: first, roleFlavors: Object.fromEntries(roleFlavors) };
}

/** The flavors in words: `gpu/h100`, or `gpu/a100 (Worker), gpu/h100 (Head)` if types have different ones. */
export function flavorWords(flavors: Readonly<Record<string, string>>): string {
  const byFlavor = Map.groupBy(Object.keys(flavors), (key) => flavors[key] ?? "");
  const words = [...byFlavor].map(([flavor, keys]) => {
    const roles = keys.map((key) => partsOf(key).role);
    return roles.includes(null) ? flavor : `${flavor} (${roles.join(", ")})`;
  });
  return words.sort().join(", ");
}
