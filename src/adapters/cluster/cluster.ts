import { LABEL } from "../../core/job/labels.ts";
import { summarize } from "../../core/plan/capacity.ts";
import type { GangScheduler } from "../../core/pods/pod-group.ts";
import type { PodView } from "../../core/pods/pod-view.ts";
import type { ClaimAction } from "../../core/reconcile/claim.ts";
import type { Action, ObservedCluster } from "../../core/reconcile/decision.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { objectAt, stringAt } from "../../runtime/json.ts";
import { Actions, type ActOutcome } from "./actions.ts";
import { createKubeClient, type KubeClient } from "./client.ts";
import { EventTeller, type ToldEvents } from "./event-teller.ts";
import {
  compactNode,
  type KeptGroup,
  type KeptObject,
  type KeptPod,
  keepConfigMap,
  keepGroup,
  keepObject,
  keepPod,
  strangerView,
} from "./kept-objects.ts";
import { LastWords } from "./last-words.ts";
import { groupsPath, lookAtJob } from "./look-at-job.ts";
import type { ObjectStore } from "./object-store.ts";
import { CapacityObserver, type CapacityReport } from "./observer.ts";
import { createPodLogs, type PodLogs } from "./pod-logs.ts";
import { Reflector, type ReflectorOptions } from "./reflector.ts";

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
  /** The scheduler there that places the pods of a PodGroup together; absent or null: none. */
  readonly gangScheduler?: GangScheduler | null;
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
  /** Pods that hold one of these names and do not belong to the job; they carry no job's uid. */
  readonly strangers: (
    jobUid: string,
    of: { readonly namespace: string; readonly pods: readonly string[] },
  ) => readonly PodView[];
  /** What the cluster itself says of a job now; null where it does not answer. */
  readonly look: (jobUid: string, signal: AbortSignal) => Promise<ObservedCluster | null>;
  /** The jobs of this installation of which anything is seen; may repeat. */
  readonly jobUids: () => Iterable<string>;
  /** The namespace in which something of a job is seen; null where nothing is. */
  readonly namespaceOf: (jobUid: string) => string | null;
  readonly act: (action: Action, signal: AbortSignal) => Promise<ActOutcome>;
  readonly claim: (action: ClaimAction, signal: AbortSignal) => Promise<ActOutcome>;
  readonly anchorLives: (of: Pick<ClaimAction, "namespace" | "anchor">, signal: AbortSignal) => Promise<boolean>;
  readonly logs: Pick<PodLogs, "look" | "open">;
  /** Makes Kubernetes events of these, if it can; nobody waits for it. */
  readonly tell: (told: ToldEvents) => void;
};

/** Watches of four resources and lists beside them, which never wait behind writes. */
const CONNECTIONS_FOR_READS = 16;

/** Connects to a cluster; nothing is sent before `start`. Throws if the kubeconfig cannot be used. */
export function connectCluster(options: ClusterOptions): Cluster {
  const { name, clock, installation, gangScheduler: scheduler = null } = options;
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
    configMap: (key) => actions.anchors.forget(key),
  });
  // PodGroups are not among them: a cluster whose gang scheduler is missing runs the gangs that it has.
  const all = [parts.pods, parts.nodes, parts.services, parts.configMaps];
  const seen = (key: string) => parts.configMaps.store.get(key);
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
  const uidOf = (anchor: string) => seen(anchor)?.view.uid;
  const teller = new EventTeller({ ...options, client, uidOf });
  return {
    name,
    tell: (told) => teller.tell(told),
    start() {
      for (const reflector of all) reflector.start();
      parts.groups?.start();
      observer.start();
    },
    tellCapacity: () => observer.changed(),
    async close() {
      const closed = [...all.map((reflector) => reflector.close()), parts.groups?.close(), observer.close()];
      teller.close();
      await Promise.all([client.close(), logs.close()]);
      await Promise.all(closed);
    },
    synced: () => all.every((reflector) => reflector.synced),
    lastHeardMs: () => {
      const heard = all.map((reflector) => reflector.lastHeardMs);
      return heard.includes(null) ? null : Math.min(...heard.map(Number));
    },
    observe: (jobUid) => seenOf(jobUid, parts, { cluster: name, scheduler }),
    strangers: (jobUid, names) => strangersIn(parts.pods.store, jobUid, names),
    look: (jobUid, signal) => lookAtJob(client, { cluster: name, installation, jobUid, scheduler }, signal),
    jobUids: function* () {
      for (const { store } of [parts.pods, parts.services, parts.configMaps]) yield* store.jobUids();
    },
    namespaceOf: (jobUid) =>
      [parts.pods, parts.services, parts.configMaps].map(({ store }) => store.namespaceOf(jobUid)).find(Boolean) ??
      null,
    act: (action, signal) => actions.act(action, signal),
    claim: (action, signal) => actions.claim(action, signal),
    anchorLives: ({ namespace, anchor }, signal) => actions.anchors.lives({ namespace, ...anchor }, signal),
    logs,
  };
}

/** What was heard of a job here. */
function seenOf(
  jobUid: string,
  parts: ReturnType<typeof reflect>,
  { cluster, scheduler }: { readonly cluster: string; readonly scheduler: GangScheduler | null },
): ObservedCluster {
  const configMaps = parts.configMaps.store.ofJob(jobUid);
  const uids = configMaps.map(({ view }) => view.uid);
  const pods = withOwned(parts.pods.store, jobUid, uids).flatMap((kept) => kept.view ?? []);
  const groups = (parts.groups?.store.ofJob(jobUid) ?? []).map((kept) => kept.view);
  const lost = parts.lastWords.ofJob(jobUid);
  return {
    cluster,
    pods: pods.map((pod) => ({ ...pod, nodeGone: isNodeGone(pod, parts.nodes) })),
    ...(lost.length === 0 ? {} : { lost }),
    services: withOwned(parts.services.store, jobUid, uids).map((kept) => kept.view),
    configMaps: configMaps.map((kept) => kept.view),
    ...(scheduler === null ? {} : { gang: { scheduler, groups } }),
  };
}

/** What is labelled as a job's, and what its anchors control although its labels say otherwise. */
function withOwned<T>(store: ObjectStore<T>, jobUid: string, anchorUids: readonly string[]): readonly T[] {
  return [...new Set([...store.ofJob(jobUid), ...anchorUids.flatMap((uid) => store.ofOwner(uid))])];
}

function strangersIn(store: ObjectStore<KeptPod>, jobUid: string, names: Parameters<Cluster["strangers"]>[1]) {
  return names.pods.flatMap((pod) => {
    const kept = store.get(`${names.namespace}/${pod}`);
    return kept === undefined || kept.jobUid === jobUid ? [] : strangerView(kept);
  });
}

type Changed = { readonly capacity: () => void; readonly configMap: (key: string) => void };

function reflect(client: KubeClient, options: ClusterOptions, changed: Changed) {
  const { clock, random, installation, onJobChanged, onError } = options;
  const ours = `${LABEL.installation}=${installation}`;
  const silenceMsMax = options.silenceMsMax ?? 150_000;
  const base = { client, clock, random, silenceMsMax, onHealth: changed.capacity, onError };
  const tell = (before: { jobUid: string | null } | undefined, after: { jobUid: string | null } | undefined) => {
    const uids = new Set([before?.jobUid, after?.jobUid]);
    for (const uid of uids) if (typeof uid === "string") onJobChanged(uid);
  };
  const objects = <T extends KeptObject>(
    path: string,
    keep: (object: JsonObject, installation: string) => T,
    onChange: (key: string) => void,
  ) =>
    new Reflector<T>({
      ...base,
      path,
      labelSelector: ours,
      keep: (object) => keep(object, installation),
      jobOf: (kept) => kept.jobUid,
      ownerOf: (kept) => kept.ownerUid,
      onChange: (key, before, after) => {
        onChange(key);
        tell(before, after);
      },
    });
  const lastWords = new LastWords(() => clock.monotonicMs());
  const pods = new Reflector<KeptPod>({
    ...base,
    path: "/api/v1/pods",
    labelSelector: "",
    keep: (object) => keepPod(object, installation),
    jobOf: (kept) => kept.jobUid,
    ownerOf: (kept) => kept.ownerUid,
    onChange: (_key, before, after) => {
      if (roomOf(before) !== roomOf(after)) changed.capacity();
      if (before !== undefined && after === undefined) lastWords.heard(before);
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
  const services = objects("/api/v1/services", keepObject, () => undefined);
  const configMaps = objects("/api/v1/configmaps", keepConfigMap, changed.configMap);
  return { pods, lastWords, nodes, services, configMaps, groups: groupReflector(base, options, tell) };
}

function groupReflector(
  base: Omit<ReflectorOptions<KeptGroup>, "path" | "labelSelector" | "keep" | "jobOf" | "onChange">,
  { gangScheduler = null, installation }: ClusterOptions,
  tell: (before: KeptGroup | undefined, after: KeptGroup | undefined) => void,
): Reflector<KeptGroup> | null {
  if (gangScheduler === null) return null;
  return new Reflector<KeptGroup>({
    ...base,
    path: groupsPath(gangScheduler),
    labelSelector: `${LABEL.installation}=${installation}`,
    keep: (object) => keepGroup(object, installation),
    jobOf: (kept) => kept.jobUid,
    onChange: (_key, before, after) => tell(before, after),
  });
}

/** Only of pods that are being deleted: nobody asks it of others. */
function isNodeGone({ deleting, nodeName }: PodView, nodes: Reflector<JsonObject>): boolean {
  return deleting && nodeName !== "" && nodes.synced && nodes.store.get(nodeName) === undefined;
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
