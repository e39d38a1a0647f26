import type { Action, Observed, ObservedCluster } from "../../core/reconcile/decision.ts";
import type { ActOutcome } from "./actions.ts";
import type { Cluster } from "./cluster.ts";
import type { LogFailure, PodLogs } from "./pod-logs.ts";

/** All clusters of this process, as workers see them. */
export type Clusters = {
  /**
   * Null until every cluster that is named has been listed completely; with an entry for each of them, and for each
   * other in which anything of the job is seen.
   */
  readonly observe: (job: { readonly uid: string; readonly clusters: readonly string[] }) => Observed | null;
  /** The same, asked of the clusters themselves and not of what was heard of them; null where one does not answer. */
  readonly look: (
    job: { readonly uid: string; readonly clusters: readonly string[] },
    signal: AbortSignal,
  ) => Promise<Observed | null>;
  /** An action for a cluster that is not connected fails with `UnknownCluster`. */
  readonly act: (action: Action, signal: AbortSignal) => Promise<ActOutcome>;
  /** Uids of all jobs of this installation of which anything is seen in any cluster. */
  readonly seenJobs: () => readonly string[];
  /** The namespace in which something of a job is seen; null where nothing is. */
  readonly namespaceOf: (jobUid: string) => string | null;
  /** True once every cluster has been listed completely. */
  readonly synced: () => boolean;
  /** Of a cluster that is not connected: a failure `UnknownCluster`. */
  readonly logs: Pick<PodLogs, "look" | "open">;
  readonly close: () => Promise<void>;
};

export function createClusters(connected: readonly Cluster[]): Clusters {
  const byName = new Map(connected.map((cluster) => [cluster.name, cluster]));
  return {
    observe(job) {
      if (!job.clusters.every((name) => byName.get(name)?.synced() === true)) return null;
      return connected
        .map((cluster) => cluster.observe(job.uid))
        .filter((seen) => job.clusters.includes(seen.cluster) || isAnything(seen));
    },
    async look(job, signal) {
      const heard = connected
        .filter((cluster) => !job.clusters.includes(cluster.name))
        .map(({ observe }) => observe(job.uid));
      const looks = job.clusters.map((name) => byName.get(name)?.look(job.uid, signal) ?? null);
      const seen = await Promise.all(looks);
      const complete = seen.flatMap((cluster) => cluster ?? []);
      return complete.length < seen.length ? null : [...complete, ...heard.filter(isAnything)];
    },
    async act(action, signal) {
      const cluster = byName.get(action.cluster);
      if (cluster !== undefined) return cluster.act(action, signal);
      return { kind: "failed", reason: "UnknownCluster", message: `cluster ${action.cluster} is not connected` };
    },
    seenJobs: () => [...new Set(connected.flatMap((cluster) => [...cluster.jobUids()]))],
    namespaceOf: (jobUid) => connected.map((cluster) => cluster.namespaceOf(jobUid)).find(Boolean) ?? null,
    synced: () => connected.every((cluster) => cluster.synced()),
    logs: {
      look: async (target, signal) => (await byName.get(target.cluster)?.logs.look(target, signal)) ?? unknown(target),
      open: async (request, signal) =>
        (await byName.get(request.cluster)?.logs.open(request, signal)) ?? unknown(request),
    },
    async close() {
      await Promise.all(connected.map((cluster) => cluster.close()));
    },
  };
}

function unknown({ cluster }: { readonly cluster: string }): LogFailure {
  return { kind: "failed", status: 0, reason: "UnknownCluster", message: `cluster ${cluster} is not connected` };
}

function isAnything({ pods, services, anchors }: ObservedCluster): boolean {
  return pods.length + services.length + anchors.length > 0;
}
