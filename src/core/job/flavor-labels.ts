/** The node labels that the flavor of each resource demands, by resource: `nvidia.com/gpu` → labels of its nodes. */
export type FlavorLabels = Readonly<Record<string, Readonly<Record<string, string>>>>;

/**
 * The node labels that a pod must have: those of the flavors of the resources that it requests. A launcher that
 * requests no GPU may run on a node without GPUs, as a pod set of Kueue does.
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

/** The node labels of all flavors together. */
export function allNodeLabels(flavorLabels: FlavorLabels): Readonly<Record<string, string>> {
  return Object.assign({}, ...Object.values(flavorLabels));
}
