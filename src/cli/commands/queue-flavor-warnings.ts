/** Warns of quotas that no pod can use yet, and of use that no quota counts. */
import type { Cluster } from "../../gen/gangway/v1/cluster_service_pb.ts";
import { ClusterService } from "../../gen/gangway/v1/cluster_service_pb.ts";
import type { FlavorQuota, Queue } from "../../gen/gangway/v1/queue_service_pb.ts";
import type { Run } from "../run/run-command.ts";

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

/** Prints a warning for each flavor that a queue uses without a quota: queues above do not count it. */
export function warnOfUseWithoutQuota(run: Run, { name, quotas, use }: Queue): void {
  const flavors = new Set(quotas.map(({ flavor }) => flavor));
  for (const [flavor, amount] of Object.entries(use?.used ?? {})) {
    if (amount === 0n || flavors.has(flavor)) continue;
    const uses = `queue ${name} uses ${amount} of ${flavor} without a quota, so no queue above counts that`;
    run.deps.stderr(`warning: ${uses} or takes it back; a quota of 0 would let them\n`);
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
