import { LABEL } from "../../core/job/labels.ts";
import { summarize } from "../../core/plan/capacity.ts";
import type { Action, ObservedCluster } from "../../core/reconcile/decision.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { objectAt, stringAt } from "../../runtime/json.ts";
import { Actions, type ActOutcome } from "./actions.ts";
import { createKubeClient, type KubeClient } from "./client.ts";
import { compactNode, type KeptObject, type KeptPod, keepObject, keepPod } from "./kept-objects.ts";
import { lookAtJob } from "./look-at-job.ts";
import { CapacityObserver, type CapacityReport } from "./observer.ts";
import { createPodLogs, type PodLogs } from "./pod-logs.ts";
import { Reflector } from "./reflector.ts";

export type ClusterOptions = {
  readonly name: string;
  /** YAML or JSON text. */
  readonly kubeconfig: string;
  /** The installation whose objects are ours: never shared by two databases. */
  readonly installation: string;
  readonly clock: Clock;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Makes namespaces that are absent when the first object is created there. */
  readonly createNamespaces: boolean;
  /** Puts something between us and the cluster's API server, such as what measures calls. */
  readonly wrapClient?: (client: KubeClient) => KubeClient;
  /** How many writes may be under way at a time; 50 if absent. */
  readonly writeBudget?: number;
  /** 15 s if absent. */
  readonly requestTimeoutMs?: number;
  /**
   * A watch that says nothing for so long is taken for dead; 150 s if absent, since API servers send a bookmark a
   * minute.
   */
  readonly silenceMsMax?: number;
  /**
   * The cluster is reported unreachable after so long of vain attempts; 40 s if absent, as Kubernetes waits for its
   * nodes.
   */
  readonly unreachableGraceMs?: number;
  /** Capacity is reported at most once in this time; 100 ms if absent. */
  readonly capacityIntervalMsMin?: number;
  /** Anything of this job has changed in the cluster. A hint. */
  readonly onJobChanged: (jobUid: string) => void;
  readonly onCapacity: (report: CapacityReport) => void | Promise<void>;
  /** Told of what goes wrong on the way; nothing stops for it. */
  readonly onError: (error: unknown, what: string) => void;
};

/** One Kubernetes cluster as workers and the planner's observer see it. */
export type Cluster = {
  readonly name: string;
  readonly start: () => void;
  /** Reports the capacity again although nothing has changed, to whoever did not listen before. */
  readonly tellCapacity: () => void;
  /** Ends watches and calls at once. */
  readonly close: () => Promise<void>;
  /** True once every reflector has completed a list. */
  readonly synced: () => boolean;
  /** When the quietest of the reflectors last heard anything, on the monotonic clock; null if one never has. */
  readonly lastHeardMs: () => number | null;
  readonly observe: (jobUid: string) => ObservedCluster;
  /** What the cluster itself says of a job now; null where it does not answer. */
  readonly look: (jobUid: string, signal: AbortSignal) => Promise<ObservedCluster | null>;
  /** The jobs of this installation of which anything is seen; may repeat. */
  readonly jobUids: () => Iterable<string>;
  /** The namespace in which something of a job is seen; null where nothing is. */
  readonly namespaceOf: (jobUid: string) => string | null;
  readonly act: (action: Action, signal: AbortSignal) => Promise<ActOutcome>;
  readonly logs: Pick<PodLogs, "look" | "open">;
};

/** Watches of four resources and lists beside them, which never wait behind writes. */
const CONNECTIONS_FOR_READS = 16;

/** Connects to a cluster; nothing is sent before `start`. Throws if the kubeconfig cannot be used. */
export function connectCluster(options: ClusterOptions): Cluster {
  const { name, clock, installation } = options;
  const writeBudget = options.writeBudget ?? 50;
  const direct = createKubeClient({
    kubeconfig: options.kubeconfig,
    connectionsMax: writeBudget + CONNECTIONS_FOR_READS,
    requestTimeoutMs: options.requestTimeoutMs ?? 15_000,
  });
  const client = options.wrapClient?.(direct) ?? direct;
  const { kubeconfig, requestTimeoutMs = 15_000 } = options;
  const logs = createPodLogs({ kubeconfig, requestTimeoutMs }, installation);
  const parts = reflect(client, options, {
    capacity: () => observer.changed(),
    anchor: (key) => actions.anchors.forget(key),
  });
  const all = [parts.pods, parts.nodes, parts.services, parts.anchors];
  const seen = (key: string) => parts.anchors.store.get(key);
  const actions = new Actions({
    client,
    clock,
    installation,
    seen,
    writeBudget,
    createNamespaces: options.createNamespaces,
  });
  const observer = new CapacityObserver({
    cluster: name,
    clock,
    intervalMsMin: options.capacityIntervalMsMin ?? 100,
    unreachableGraceMs: options.unreachableGraceMs ?? 40_000,
    summarize: () => {
      if (!parts.nodes.synced || !parts.pods.synced) return null;
      const pods = [...parts.pods.store.values()].map((kept) => kept.compact);
      return summarize([...parts.nodes.store.values()], pods);
    },
    failingForMs: () => Math.max(...all.map((reflector) => reflector.failingForMs)),
    onCapacity: options.onCapacity,
    onError: options.onError,
  });
  return {
    name,
    start() {
      for (const reflector of all) reflector.start();
      observer.start();
    },
    tellCapacity: () => observer.changed(),
    async close() {
      const closed = [...all.map((reflector) => reflector.close()), observer.close()];
      await Promise.all([client.close(), logs.close()]);
      await Promise.all(closed);
    },
    synced: () => all.every((reflector) => reflector.synced),
    lastHeardMs: () => {
      const heard = all.map((reflector) => reflector.lastHeardMs);
      return heard.includes(null) ? null : Math.min(...heard.map(Number));
    },
    observe: (jobUid) => ({
      cluster: name,
      pods: parts.pods.store.ofJob(jobUid).flatMap((kept) => kept.view ?? []),
      services: parts.services.store.ofJob(jobUid).map((kept) => kept.view),
      anchors: parts.anchors.store.ofJob(jobUid).map((kept) => kept.view),
    }),
    look: (jobUid, signal) => lookAtJob(client, { cluster: name, installation, jobUid }, signal),
    jobUids: function* () {
      for (const { store } of [parts.pods, parts.services, parts.anchors]) yield* store.jobUids();
    },
    namespaceOf: (jobUid) =>
      [parts.pods, parts.services, parts.anchors].map(({ store }) => store.namespaceOf(jobUid)).find(Boolean) ?? null,
    act: (action, signal) => actions.act(action, signal),
    logs,
  };
}

type Changed = { readonly capacity: () => void; readonly anchor: (key: string) => void };

function reflect(client: KubeClient, options: ClusterOptions, changed: Changed) {
  const { clock, random, installation, onJobChanged, onError } = options;
  const ours = `${LABEL.installation}=${installation}`;
  const silenceMsMax = options.silenceMsMax ?? 150_000;
  const base = { client, clock, random, silenceMsMax, onHealth: changed.capacity, onError };
  const tell = (before: { jobUid: string | null } | undefined, after: { jobUid: string | null } | undefined) => {
    const uids = new Set([before?.jobUid, after?.jobUid]);
    for (const uid of uids) if (typeof uid === "string") onJobChanged(uid);
  };
  const objects = (path: string, onChange: (key: string) => void) =>
    new Reflector<KeptObject>({
      ...base,
      path,
      labelSelector: ours,
      keep: (object) => keepObject(object, installation),
      jobOf: (kept) => kept.jobUid,
      onChange: (key, before, after) => {
        onChange(key);
        tell(before, after);
      },
    });
  const pods = new Reflector<KeptPod>({
    ...base,
    path: "/api/v1/pods",
    labelSelector: "",
    keep: (object) => keepPod(object, installation),
    jobOf: (kept) => kept.jobUid,
    onChange: (_key, before, after) => {
      if (roomOf(before) !== roomOf(after)) changed.capacity();
      tell(before, after);
    },
  });
  const nodes = new Reflector<JsonObject>({
    ...base,
    path: "/api/v1/nodes",
    labelSelector: "",
    keep: compactNode,
    jobOf: () => null,
    onChange: changed.capacity,
  });
  const services = objects("/api/v1/services", () => undefined);
  const anchors = objects("/api/v1/configmaps", changed.anchor);
  return { pods, nodes, services, anchors };
}

/** Where a pod takes room: what changes beside it is of no account for capacity. */
function roomOf(kept: KeptPod | undefined): string {
  if (kept === undefined) return "";
  const phase = stringAt(objectAt(kept.compact, "status"), "phase") ?? "";
  const node = stringAt(objectAt(kept.compact, "spec"), "nodeName") ?? "";
  const metadata = objectAt(kept.compact, "metadata");
  const deleting = metadata["deletionTimestamp"] !== undefined;
  return `${stringAt(metadata, "uid")} ${node} ${phase === "Succeeded" || phase === "Failed"} ${deleting}`;
}
