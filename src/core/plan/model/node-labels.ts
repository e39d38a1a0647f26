export type NodeLabels = Readonly<Record<string, string>>;

export function carries(labels: NodeLabels, required: NodeLabels): boolean {
  // Many nodes are asked, so it makes no list of the labels.
  for (const key in required) if (labels[key] !== required[key]) return false;
  return true;
}
