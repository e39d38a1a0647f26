import type { Action, Observed } from "../../core/reconcile/decision.ts";
import type { ActOutcome } from "./actions.ts";
import type { Cluster } from "./cluster.ts";

/** All clusters of this process, as workers see them. */
export type Clusters = {
  /**
   * Null until every cluster that is named has been listed completely; with an entry for each of them, and for each
   * other in which anything of the job is seen.
   */
  readonly observe: (job: { readonly uid: string; readonly clusters: readonly string[] }) => Observed | null;
  /** An action for a cluster that is not connected fails with `UnknownCluster`. */
  readonly act: (action: Action, signal: AbortSignal) => Promise<ActOutcome>;
  /** Uids of all jobs of this installation of which anything is seen in any cluster. */
  readonly seenJobs: () => readonly string[];
  /** The namespace in which something of a job is seen; null where nothing is. */
  readonly namespaceOf: (jobUid: string) => string | null;
  readonly close: () => Promise<void>;
};

export function createClusters(connected: readonly Cluster[]): Clusters {
  const byName = new Map(connected.map((cluster) => [cluster.name, cluster]));
  return {
    observe(job) {
      if (!job.clusters.every((name) => byName.get(name)?.synced() === true)) return null;
      return connected
        .map((cluster) => cluster.observe(job.uid))
        .filter(
          (seen) =>
            job.clusters.includes(seen.cluster) || seen.pods.length + seen.services.length + seen.anchors.length > 0,
        );
    },
    async act(action, signal) {
      const cluster = byName.get(action.cluster);
      if (cluster !== undefined) return cluster.act(action, signal);
      return { kind: "failed", reason: "UnknownCluster", message: `cluster ${action.cluster} is not connected` };
    },
    seenJobs: () => [...new Set(connected.flatMap((cluster) => [...cluster.jobUids()]))],
    namespaceOf: (jobUid) => connected.map((cluster) => cluster.namespaceOf(jobUid)).find(Boolean) ?? null,
    async close() {
      await Promise.all(connected.map((cluster) => cluster.close()));
    },
  };
}
