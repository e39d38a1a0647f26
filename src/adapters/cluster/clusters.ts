import type { LogFailure } from "../../core/job/container-log.ts";
import type { PodView } from "../../core/pods/read/pod-view.ts";
import type { Action, ActOutcome, AnchorEvents } from "../../core/reconcile/decision.ts";
import type { ClaimAction } from "../../core/reconcile/objects/claim.ts";
import type { JobToObserve, Loss, Observed, ObservedCluster } from "../../core/reconcile/observed.ts";
import type { Cluster } from "./cluster.ts";
import type { PodLogs } from "./pod-logs.ts";

/** All clusters of this process, for workers. */
export type Clusters = {
  /**
   * The job's objects as the watches show them: an entry for each cluster that is named, and for each other cluster
   * with an object of the job. Null until every named cluster has been listed completely or was forgotten, and until
   * every cluster that nobody has adopted has been listed or does not answer: the job may run there unknown.
   */
  readonly observe: (job: JobToObserve) => Observed | null;
  /** The same, listed anew from the API servers of the named clusters. Null: one of them does not answer. */
  readonly listJob: (job: JobToObserve, signal: AbortSignal) => Promise<Observed | null>;
  /** Carries out an action. Fails with `UnknownCluster` if its cluster is not connected. */
  readonly act: (action: Action, signal: AbortSignal) => Promise<ActOutcome>;
  readonly claim: (action: ClaimAction, signal: AbortSignal) => Promise<ActOutcome>;
  readonly anchorLives: (
    of: Pick<ClaimAction, "cluster" | "namespace" | "anchor">,
    signal: AbortSignal,
  ) => Promise<boolean>;
  /** Writes these as Kubernetes events if it can. Does not wait for the outcome. */
  readonly writeEvents: (events: AnchorEvents) => void;
  /** Uids of all jobs of this installation that have an object in any cluster. */
  readonly seenJobs: () => readonly string[];
  /** The namespace of a job's objects. Null: none is seen. */
  readonly namespaceOf: (jobUid: string) => string | null;
  /** True once every cluster has been listed completely or counts as unreachable: none keeps this process waiting. */
  readonly synced: () => boolean;
  /** The pods of one job. Null: its cluster does not answer, or is not connected. */
  readonly pods: {
    readonly ofJob: (
      of: { readonly cluster: string; readonly namespace: string; readonly jobUid: string },
      signal: AbortSignal,
    ) => Promise<readonly PodView[] | null>;
  };
  /** Reads logs. Fails with `UnknownCluster` if the cluster is not connected. */
  readonly logs: Pick<PodLogs, "look" | "open">;
  readonly close: () => Promise<void>;
};

/** The clusters that are connected at the time of a call. */
export type Connected = {
  readonly connected: () => readonly Cluster[];
  /** True for a cluster that was forgotten: it has no objects of ours and will never have any. */
  readonly isForgotten: (name: string) => boolean;
  /** True for a cluster that nobody has adopted after the database was restored. */
  readonly isUnadopted: (name: string) => boolean;
  /** What a job needs to know of a cluster that counts as lost. Null: it does not. */
  readonly lossOf: (name: string, of: JobToObserve["of"]) => Loss | null;
};

export function createClusters(of: Connected | readonly Cluster[]): Clusters {
  const { connected, isForgotten, isUnadopted, lossOf }: Connected = isList(of) ? onlyConnected(of) : of;
  const byName = (name: string) => connected().find((cluster) => cluster.name === name);
  const marked = (seen: ObservedCluster): ObservedCluster =>
    isUnadopted(seen.cluster) ? { ...seen, unadopted: true } : seen;
  const withStrangers = (cluster: Cluster, job: JobToObserve, seen: ObservedCluster): ObservedCluster => {
    const strangers = job.names === undefined ? [] : cluster.strangers(job.uid, job.names);
    const known = new Set(seen.pods.map(({ uid }) => uid));
    const unknown = strangers.filter(({ uid }) => !known.has(uid));
    return unknown.length === 0 ? seen : { ...seen, pods: [...seen.pods, ...unknown] };
  };
  /** What is known of a cluster without asking it. Null: it has to be asked. */
  const withoutAsking = (name: string, { of }: JobToObserve): ObservedCluster | null => {
    const loss = lossOf(name, of);
    if (loss !== null) return { ...nothingIn(name), loss };
    return byName(name) === undefined && isForgotten(name) ? { ...nothingIn(name), forgotten: true } : null;
  };
  const others = (job: JobToObserve) =>
    connected()
      .filter(({ name }) => !job.clusters.includes(name) && lossOf(name, job.of) === null)
      .map((cluster) => marked(cluster.observe(job.uid)))
      .filter(isAnything);
  return {
    observe(job) {
      if (connected().some((cluster) => isUnadopted(cluster.name) && isAwaited(cluster))) return null;
      const named = job.clusters.map((name) => {
        const cluster = byName(name);
        const known = withoutAsking(name, job);
        if (known !== null || cluster === undefined) return known;
        return cluster.synced() ? withStrangers(cluster, job, marked(cluster.observe(job.uid))) : null;
      });
      const complete = named.flatMap((cluster) => cluster ?? []);
      return complete.length < named.length ? null : [...complete, ...others(job)];
    },
    async listJob(job, signal) {
      const heard = others(job);
      const lists = job.clusters.map(async (name) => {
        const cluster = byName(name);
        const known = withoutAsking(name, job);
        if (known !== null || cluster === undefined) return known;
        const seen = await cluster.listJob(job.uid, signal);
        return seen === null ? null : withStrangers(cluster, job, marked(seen));
      });
      const seen = await Promise.all(lists);
      const complete = seen.flatMap((cluster) => cluster ?? []);
      return complete.length < seen.length ? null : [...complete, ...heard];
    },
    async act(action, signal) {
      const cluster = byName(action.cluster);
      if (cluster !== undefined) return cluster.act(action, signal);
      return { kind: "failed", reason: "UnknownCluster", message: `cluster ${action.cluster} is not connected` };
    },
    writeEvents: (events) => byName(events.cluster)?.writeEvents(events),
    claim: async (action, signal) => (await byName(action.cluster)?.claim(action, signal)) ?? unknown(action),
    anchorLives: async (of, signal) => (await byName(of.cluster)?.anchorLives(of, signal)) ?? false,
    seenJobs: () => [...new Set(connected().flatMap((cluster) => [...cluster.jobUids()]))],
    namespaceOf: (jobUid) =>
      connected()
        .map((cluster) => cluster.namespaceOf(jobUid))
        .find(Boolean) ?? null,
    synced: () => !connected().some(isAwaited),
    pods: { ofJob: async ({ cluster, ...of }, signal) => (await byName(cluster)?.podsOf(of, signal)) ?? null },
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

/** True until a cluster has been listed completely, or counts as unreachable. */
function isAwaited(cluster: Cluster): boolean {
  return !cluster.synced() && cluster.health().kind === "active";
}

function onlyConnected(clusters: readonly Cluster[]): Connected {
  return { connected: () => clusters, isForgotten: () => false, isUnadopted: () => false, lossOf: () => null };
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
