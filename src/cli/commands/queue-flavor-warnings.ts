/** Warns of quotas that no pod can use yet: a mistyped flavor or resource would look like a queue without quota. */
import type { Cluster } from "../../gen/gangway/v1/cluster_service_pb.ts";
import { ClusterService } from "../../gen/gangway/v1/cluster_service_pb.ts";
import type { FlavorQuota } from "../../gen/gangway/v1/queue_service_pb.ts";
import type { Run } from "../run-command.ts";

/**
 * Prints a warning for each quota of a flavor that no listed cluster has with its resource. Prints nothing if no
 * cluster is listed, or if they cannot be read: quotas may come before clusters.
 */
export async function warnOfUnknownFlavors(run: Run, quotas: readonly FlavorQuota[]): Promise<void> {
  const flavors = (await listedClusters(run)).flatMap((cluster) => cluster.flavors);
  if (flavors.length === 0) return;
  for (const { flavor, resource } of quotas) {
    if (flavors.some((one) => one.name === flavor && one.resource === resource)) continue;
    const resources = new Set(flavors.filter(({ name }) => name === flavor).map((one) => one.resource));
    const there = resources.size === 0 ? "" : `; it is there of ${[...resources].join(", ")}`;
    run.deps.stderr(`warning: no cluster in the list has flavor ${flavor} of ${resource} yet${there}\n`);
  }
}

/** The queue is written already, so a failure here must not look like one of that. */
async function listedClusters(run: Run): Promise<readonly Cluster[]> {
  try {
    return (await run.client.call(ClusterService.method.listClusters, {})).clusters;
  } catch {
    return [];
  }
}
