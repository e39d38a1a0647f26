import type { JobSpec } from "../../job/spec.ts";
import type { PlanCluster } from "./snapshot.ts";

type Selection = Partial<Pick<JobSpec["placement"], "clusters" | "clusterSelector">>;

/** Why a job's placement leaves a cluster out. Null: it selects the cluster. */
export function unselected(
  { clusters = [], clusterSelector = {} }: Selection,
  { name, labels }: Pick<PlanCluster, "name" | "labels">,
): string | null {
  if (clusters.length > 0 && !clusters.includes(name)) return `the job asks for ${clusters.join(", ")}`;
  const missing = Object.entries(clusterSelector).find(([key, value]) => labels[key] !== value);
  return missing === undefined ? null : `it has no label ${missing[0]}=${missing[1]}`;
}
