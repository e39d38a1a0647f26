import type { ClaimAction } from "../../core/reconcile/claim.ts";
import type { Action, Observed, ObservedCluster } from "../../core/reconcile/decision.ts";
import type { ActOutcome } from "./actions.ts";
import type { Cluster } from "./cluster.ts";
import type { ToldEvents } from "./event-teller.ts";
import type { LogFailure, PodLogs } from "./pod-logs.ts";

/** What is asked about a job. */
type JobPlace = {
  readonly uid: string;
  readonly clusters: readonly string[];
  /** Names of its pods: strangers that hold one are seen too, without a job's uid. Absent: not looked for. */
  readonly names?: { readonly namespace: string; readonly pods: readonly string[] };
};

/** All clusters of this process, as workers see them. */
export type Clusters = {
  /**
   * Null until every cluster that is named has been listed completely, or was forgotten; with an entry for each of them, and for each
   * other in which anything of the job is seen.
   */
  readonly observe: (job: JobPlace) => Observed | null;
  /** The same, asked of the clusters themselves and not of what was heard of them; null where one does not answer. */
  readonly look: (job: JobPlace, signal: AbortSignal) => Promise<Observed | null>;
  /** An action for a cluster that is not connected fails with `UnknownCluster`. */
  readonly act: (action: Action, signal: AbortSignal) => Promise<ActOutcome>;
  readonly claim: (action: ClaimAction, signal: AbortSignal) => Promise<ActOutcome>;
  readonly anchorLives: (
    of: Pick<ClaimAction, "cluster" | "namespace" | "anchor">,
    signal: AbortSignal,
  ) => Promise<boolean>;
  /** Makes Kubernetes events of these, if it can; nobody waits for it. */
  readonly tell: (told: ToldEvents) => void;
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

/** What is connected at the moment of a call. */
export type Connected = {
  readonly connected: () => readonly Cluster[];
  /** Gone for good: nothing is there, and nothing will be. */
  readonly isForgotten: (name: string) => boolean;
};

export function createClusters(of: Connected | readonly Cluster[]): Clusters {
  const { connected, isForgotten }: Connected = isList(of) ? { connected: () => of, isForgotten: () => false } : of;
  const byName = (name: string) => connected().find((cluster) => cluster.name === name);
  const withStrangers = (cluster: Cluster, job: JobPlace, seen: ObservedCluster): ObservedCluster => {
    const strangers = job.names === undefined ? [] : cluster.strangers(job.uid, job.names);
    const known = new Set(seen.pods.map(({ uid }) => uid));
    const unknown = strangers.filter(({ uid }) => !known.has(uid));
    return unknown.length === 0 ? seen : { ...seen, pods: [...seen.pods, ...unknown] };
  };
  const others = (job: JobPlace) =>
    connected()
      .filter((cluster) => !job.clusters.includes(cluster.name))
      .map((cluster) => cluster.observe(job.uid))
      .filter(isAnything);
  return {
    observe(job) {
      const named = job.clusters.map((name) => {
        const cluster = byName(name);
        if (cluster !== undefined)
          return cluster.synced() ? withStrangers(cluster, job, cluster.observe(job.uid)) : null;
        return isForgotten(name) ? nothingIn(name) : null;
      });
      const complete = named.flatMap((cluster) => cluster ?? []);
      return complete.length < named.length ? null : [...complete, ...others(job)];
    },
    async look(job, signal) {
      const heard = others(job);
      const looks = job.clusters.map(async (name) => {
        const cluster = byName(name);
        const seen = await cluster?.look(job.uid, signal);
        if (cluster !== undefined) return seen ? withStrangers(cluster, job, seen) : null;
        return isForgotten(name) ? nothingIn(name) : null;
      });
      const seen = await Promise.all(looks);
      const complete = seen.flatMap((cluster) => cluster ?? []);
      return complete.length < seen.length ? null : [...complete, ...heard];
    },
    async act(action, signal) {
      const cluster = byName(action.cluster);
      if (cluster !== undefined) return cluster.act(action, signal);
      return { kind: "failed", reason: "UnknownCluster", message: `cluster ${action.cluster} is not connected` };
    },
    tell: (told) => byName(told.cluster)?.tell(told),
    claim: async (action, signal) => (await byName(action.cluster)?.claim(action, signal)) ?? unknown(action),
    anchorLives: async (of, signal) => (await byName(of.cluster)?.anchorLives(of, signal)) ?? false,
    seenJobs: () => [...new Set(connected().flatMap((cluster) => [...cluster.jobUids()]))],
    namespaceOf: (jobUid) =>
      connected()
        .map((cluster) => cluster.namespaceOf(jobUid))
        .find(Boolean) ?? null,
    synced: () => connected().every((cluster) => cluster.synced()),
    logs: {
      look: async (target, signal) => (await byName(target.cluster)?.logs.look(target, signal)) ?? unknown(target),
      open: async (request, signal) => (await byName(request.cluster)?.logs.open(request, signal)) ?? unknown(request),
    },
    async close() {
      await Promise.all(connected().map((cluster) => cluster.close()));
    },
  };
}

function unknown({ cluster }: { readonly cluster: string }): LogFailure & ActOutcome {
  return { kind: "failed", status: 0, reason: "UnknownCluster", message: `cluster ${cluster} is not connected` };
}

function isList(of: Connected | readonly Cluster[]): of is readonly Cluster[] {
  return Array.isArray(of);
}

function nothingIn(cluster: string): ObservedCluster {
  return { cluster, pods: [], services: [], configMaps: [] };
}

function isAnything({ pods, services, configMaps, gang }: ObservedCluster): boolean {
  return pods.length + services.length + configMaps.length + (gang?.groups.length ?? 0) > 0;
}
