/**
 * One connected Kubernetes cluster: its watches, its writes, its logs and its capacity. It serves users whose gangs run
 * on several clusters, each of which may be away for a while.
 */

import { LABEL } from "../../core/job/labels.ts";
import { capacityEntries, nodeEntry, unboundEntry } from "../../core/plan/facts/read-capacity.ts";
import type { EntryKey } from "../../core/plan/model/capacity-entry.ts";
import type { GangScheduler } from "../../core/pods/build/pod-group.ts";
import type { PodView } from "../../core/pods/read/pod-view.ts";
import type { Action, ActOutcome, AnchorEvents } from "../../core/reconcile/decision.ts";
import type { ClaimAction } from "../../core/reconcile/objects/claim.ts";
import type { ObservedCluster } from "../../core/reconcile/observed.ts";
import type { Clock } from "../../runtime/clock.ts";
import { arrayAt, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { minOf } from "../../runtime/lists.ts";
import { Actions } from "./actions.ts";
import type { AllowedHosts } from "./allowed-hosts.ts";
import { AnchorEventWriter } from "./anchor-event-writer.ts";
import type { CapacitySource } from "./capacity-changes.ts";
import { CapacityObserver, type CapacityReport } from "./capacity-observer.ts";
import { createKubeClient, type KubeClient, type KubeResult } from "./client.ts";
import type { RunCode } from "./connection-pool.ts";
import type { ClusterHealth } from "./health.ts";
import { HealthWatch } from "./health-watch.ts";
import { guardIdentity } from "./identity.ts";
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
import { groupsPath, listJob, listPods } from "./list-job.ts";
import { listOwners, type NamedOwner } from "./list-owners.ts";
import { LostPods } from "./lost-pods.ts";
import { type OwnObject, ownObjects } from "./own-objects.ts";
import { createPodLogs, type PodLogs } from "./pod-logs.ts";
import { PROBE_MS_MAX } from "./probe.ts";
import { newKeptBudget, Reflector, type ReflectorOptions } from "./reflector.ts";
import { SilenceReport } from "./silence-report.ts";
import type { WatchedObjects } from "./watched-objects.ts";
import { type WriteFacts, WriteQueue } from "./write-queue.ts";

export type KubeClusterOptions = {
  readonly name: string;
  /** YAML or JSON text. */
  readonly kubeconfig: string;
  /** The addresses that connections may lead to. Omitted: all but link-local ones and their like. */
  readonly hosts?: AllowedHosts;
  /** The installation whose objects are ours. Two databases never share one. */
  readonly installation: string;
  readonly clock: Clock;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Creates a missing namespace when the first object is created there. */
  readonly createNamespaces: boolean;
  /** The gang scheduler of the cluster, which places the pods of a PodGroup together. Null or omitted: none. */
  readonly gangScheduler?: GangScheduler | null;
  /** Why the cluster with this uid is not the one of this name; null: it is. Omitted: any cluster is. */
  readonly claimUid?: (uid: string) => Promise<string | null>;
  /** Wraps the client of the API server, for example to measure its calls. */
  readonly wrapClient?: (client: KubeClient) => KubeClient;
  /** Runs code that reads an answer of the cluster, which blocks this process meanwhile. Omitted: it is called. */
  readonly runCode?: RunCode;
  /** Called with an answer whose reading took long, without the pauses in between. */
  readonly onSlowAnswer?: (tookMs: number) => void;
  /** The most text that is kept of the cluster's objects, as JSON. Omitted: 128 Mi characters. */
  readonly keptCharsMax?: number;
  /** The most writes that are under way at a time; fewer while the cluster does not bear so many. Omitted: 50. */
  readonly writesMax?: number;
  /** Called with each write that the cluster throttles, or answers too late. */
  readonly onThrottled?: () => void;
  /** Omitted: 15 s. */
  readonly requestTimeoutMs?: number;
  /**
   * How long a watch may be silent before it counts as dead. Omitted: 150 s, since API servers send a bookmark a
   * minute.
   */
  readonly silenceMsMax?: number;
  /**
   * How long the calls of a watch must fail before the cluster is reported unreachable, although its probe is answered.
   * Omitted: 40 s, as Kubernetes waits for its nodes.
   */
  readonly unreachableGraceMs?: number;
  /** The shortest time between two reports of capacity. Omitted: 100 ms. */
  readonly capacityIntervalMsMin?: number;
  /** A hint that an object of this job has changed in the cluster. */
  readonly onJobChanged: (jobUid: string) => void;
  /**
   * Records a report of the capacity. Returns the epoch of the complete report that counts now; null if this one was
   * not recorded.
   */
  readonly onCapacity: (report: CapacityReport) => Promise<number | null>;
  /**
   * Adds to the time for which the cluster has not answered this process, in milliseconds. False: the time was not
   * counted, so the next report has it too. Omitted: nobody counts it.
   */
  readonly onSilence?: (ms: number) => Promise<boolean>;
  /** False while another process reports the capacity. Omitted: this one reports it. */
  readonly reportsCapacity?: () => boolean;
  /** Called with errors. Nothing stops for them. */
  readonly onError: (error: unknown, what: string) => void;
};

/** One Kubernetes cluster, for workers and for the planner's observer. */
export type Cluster = {
  readonly name: string;
  readonly start: () => void;
  /** Reports the whole capacity, although nothing may have changed: this process has become the one that reports it. */
  readonly tellCapacity: () => void;
  /** Ends watches and calls at once. */
  readonly close: () => Promise<void>;
  /** True once every reflector has completed a list. */
  readonly synced: () => boolean;
  readonly health: () => ClusterHealth;
  readonly writes: () => WriteFacts;
  /**
   * When the reflector that was silent longest last heard from the server, on the monotonic clock. Null: one never has.
   */
  readonly lastHeardMs: () => number | null;
  readonly observe: (jobUid: string) => ObservedCluster;
  /** Foreign pods that have one of these names. They are returned without a job's uid. */
  readonly strangers: (
    jobUid: string,
    of: { readonly namespace: string; readonly pods: readonly string[] },
  ) => readonly PodView[];
  /** The job's objects, listed anew from the API server. Null: it does not answer. */
  readonly listJob: (jobUid: string, signal: AbortSignal) => Promise<ObservedCluster | null>;
  /**
   * The pods of one job: as the watch shows them while it is up to date, else listed anew. Null: the server does not
   * answer.
   */
  readonly podsOf: (
    of: { readonly namespace: string; readonly jobUid: string },
    signal: AbortSignal,
  ) => Promise<readonly PodView[] | null>;
  /** The jobs of this installation with an object here. May repeat. */
  readonly jobUids: () => Iterable<string>;
  /** The objects of this installation's jobs that are seen, and not being deleted. */
  readonly ownObjects: () => Iterable<OwnObject>;
  /** The owners of pods and config maps, listed anew from the API server. Null: it does not answer. */
  readonly listOwners: (signal: AbortSignal) => Promise<readonly NamedOwner[] | null>;
  /** The namespace of a job's objects. Null: none is seen. */
  readonly namespaceOf: (jobUid: string) => string | null;
  readonly act: (action: Action, signal: AbortSignal) => Promise<ActOutcome>;
  readonly claim: (action: ClaimAction, signal: AbortSignal) => Promise<ActOutcome>;
  readonly anchorLives: (of: Pick<ClaimAction, "namespace" | "anchor">, signal: AbortSignal) => Promise<boolean>;
  readonly logs: Pick<PodLogs, "look" | "open">;
  /** Reads one object by its path, such as a Secret. */
  readonly read: (path: string, signal: AbortSignal) => Promise<KubeResult>;
  /** Writes these as Kubernetes events if it can. Does not wait for the outcome. */
  readonly writeEvents: (events: AnchorEvents) => void;
};

/** Connections for watches of four resources and for lists, so that reads never wait behind writes. */
const CONNECTIONS_FOR_READS = 16;

function accessTo({ kubeconfig, hosts, runCode, onSlowAnswer, requestTimeoutMs = 15_000 }: KubeClusterOptions) {
  const more = { ...(hosts === undefined ? {} : { hosts }), ...(runCode === undefined ? {} : { runCode }) };
  return { kubeconfig, requestTimeoutMs, ...more, ...(onSlowAnswer === undefined ? {} : { onSlowAnswer }) };
}

/** Connects to a cluster. Sends nothing before `start`. Throws if the kubeconfig cannot be used. */
export function connectCluster(options: KubeClusterOptions): Cluster {
  const { name, clock, installation, gangScheduler: scheduler = null, writesMax = 50 } = options;
  const access = accessTo(options);
  const direct = createKubeClient({ ...access, connectionsMax: writesMax + CONNECTIONS_FOR_READS });
  const client = guardIdentity(options.wrapClient?.(direct) ?? direct, options.claimUid ?? null);
  const logs = createPodLogs(access, installation);
  const parts = reflect(client, options, {
    capacity: (key) => observer.changed(key),
    configMap: (key) => actions.anchors.forget(key),
  });
  const own = [parts.pods, parts.services, parts.configMaps];
  const all = [...own, parts.nodes];
  // If the gang scheduler is missing, gangs that are running must still be observed.
  const optional = parts.groups === null ? [] : [parts.groups];
  const seen = (key: string) => parts.configMaps.store.get(key);
  const { createNamespaces } = options;
  const writes = new WriteQueue({ clock, writesMax, onThrottled: options.onThrottled });
  const actions = new Actions({ client, clock, installation, seen, writes, createNamespaces });
  const probing = createKubeClient({ ...access, connectionsMax: 1, requestTimeoutMs: 2 * PROBE_MS_MAX });
  const health = new HealthWatch({
    client: options.wrapClient?.(probing) ?? probing,
    clock,
    problem: () => client.problem(),
    watches: all,
    others: optional,
    graceMs: options.unreachableGraceMs ?? 40_000,
    onChange: () => observer.changed(),
  });
  const observer: CapacityObserver = observerOf(options, { source: capacityOf(parts), health });
  const silence = silenceReportOf(options, health);
  const eventWriter = new AnchorEventWriter({ ...options, client, uidOf: (anchor) => seen(anchor)?.view.uid });
  const running = [...all, ...optional, health, observer, silence];
  return {
    name,
    writeEvents: (events) => eventWriter.write(events),
    start() {
      for (const one of running) one.start();
    },
    tellCapacity: () => observer.restart(),
    async close() {
      const closed = running.map((one) => one.close());
      eventWriter.close();
      await Promise.all([client.close(), logs.close(), probing.close()]);
      writes.close();
      await Promise.all(closed);
    },
    health: () => health.now(),
    writes: () => writes.facts(),
    synced: () => all.every((reflector) => reflector.synced),
    lastHeardMs: () => {
      const heard = all.map((reflector) => reflector.lastHeardMs);
      return heard.includes(null) ? null : minOf(heard.map(Number));
    },
    observe: (jobUid) => seenOf(jobUid, parts, { cluster: name, scheduler }),
    strangers: (jobUid, names) => strangersIn(parts.pods.store, jobUid, names),
    listJob: (jobUid, signal) => listJob(client, { cluster: name, installation, jobUid, scheduler }, signal),
    podsOf: async ({ namespace, jobUid }, signal) =>
      parts.pods.synced && parts.pods.failingForMs === 0
        ? seenOf(jobUid, parts, { cluster: name, scheduler }).pods
        : listPods(client, { namespace, installation, jobUid }, signal),
    jobUids: function* () {
      for (const { store } of own) yield* store.jobUids();
    },
    ownObjects: () => ownObjects(own.map(({ store }) => store.values())),
    listOwners: (signal) => listOwners(client, installation, signal),
    namespaceOf: (jobUid) => own.map(({ store }) => store.namespaceOf(jobUid)).find(Boolean) ?? null,
    act: (action, signal) => actions.act(action, signal),
    claim: (action, signal) => actions.claim(action, signal),
    anchorLives: ({ namespace, anchor }, signal) => actions.anchors.lives({ namespace, ...anchor }, signal),
    logs,
    read: (path, signal) => client.request({ method: "GET", path }, signal),
  };
}

function observerOf(
  options: KubeClusterOptions,
  { source, health }: { readonly source: CapacitySource; readonly health: HealthWatch },
): CapacityObserver {
  const { name: cluster, clock, onCapacity, onError, reportsCapacity: reports = () => true } = options;
  const intervalMsMin = options.capacityIntervalMsMin ?? 100;
  const now = () => health.now();
  return new CapacityObserver({ cluster, clock, intervalMsMin, source, health: now, reports, onCapacity, onError });
}

function silenceReportOf(options: KubeClusterOptions, health: HealthWatch): SilenceReport {
  const { name: cluster, clock, onError, reportsCapacity: observes = () => true } = options;
  const { onSilence = async () => true } = options;
  const seen = { health: () => health.now(), silenceMs: () => health.silenceMs() };
  return new SilenceReport({ cluster, clock, ...seen, observes, onSilence, onError });
}

/** The objects of a job, as the reflectors have them. */
function seenOf(
  jobUid: string,
  parts: ReturnType<typeof reflect>,
  { cluster, scheduler }: { readonly cluster: string; readonly scheduler: GangScheduler | null },
): ObservedCluster {
  const configMaps = parts.configMaps.store.ofJob(jobUid);
  const uids = configMaps.map(({ view }) => view.uid);
  const pods = withOwned(parts.pods.store, jobUid, uids).flatMap((kept) => kept.view ?? []);
  const groups = (parts.groups?.store.ofJob(jobUid) ?? []).map((kept) => kept.view);
  const lost = parts.lostPods.ofJob(jobUid);
  return {
    cluster,
    pods: pods.map((pod) => ({ ...pod, ...nodeFacts(pod, parts.nodes) })),
    ...(lost.length === 0 ? {} : { lost }),
    services: withOwned(parts.services.store, jobUid, uids).map((kept) => kept.view),
    configMaps: configMaps.map((kept) => kept.view),
    ...(scheduler === null ? {} : { gang: { scheduler, groups } }),
  };
}

/** The entries of the capacity, as the reflectors have nodes and pods. */
function capacityOf({ nodes, pods }: Pick<ReturnType<typeof reflect>, "nodes" | "pods">): CapacitySource {
  const compact = (kept: KeptPod) => kept.compact;
  return {
    all: () => {
      if (!nodes.synced || !pods.synced) return null;
      return capacityEntries([...nodes.store.values()], [...pods.store.values()].map(compact));
    },
    entry: ({ kind, name }) => {
      if (kind === "node") return nodeEntry(name, nodes.store.get(name) ?? null, pods.store.onNode(name).map(compact));
      const kept = pods.store.get(name);
      return kept === undefined ? null : unboundEntry(name, kept.compact);
    },
  };
}

/** Objects with a job's labels, and objects that its anchors control whatever their labels are. */
function withOwned<T>(store: WatchedObjects<T>, jobUid: string, anchorUids: readonly string[]): readonly T[] {
  return [...new Set([...store.ofJob(jobUid), ...anchorUids.flatMap((uid) => store.ofOwner(uid))])];
}

function strangersIn(store: WatchedObjects<KeptPod>, jobUid: string, names: Parameters<Cluster["strangers"]>[1]) {
  return names.pods.flatMap((pod) => {
    const kept = store.get(`${names.namespace}/${pod}`);
    return kept === undefined || kept.jobUid === jobUid ? [] : strangerView(kept);
  });
}

type StoreListeners = { readonly capacity: (key?: EntryKey) => void; readonly configMap: (key: string) => void };

function reflect(client: KubeClient, options: KubeClusterOptions, changed: StoreListeners) {
  const { clock, random, installation, onJobChanged, onError } = options;
  const ours = `${LABEL.installation}=${installation}`;
  const silenceMsMax = options.silenceMsMax ?? 150_000;
  const budget = newKeptBudget(options.keptCharsMax);
  const base = { client, clock, random, silenceMsMax, budget, onHealth: () => changed.capacity(), onError };
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
  const lostPods = new LostPods(() => clock.monotonicMs());
  const pods = new Reflector<KeptPod>({
    ...base,
    path: "/api/v1/pods",
    labelSelector: "",
    keep: (object) => keepPod(object, installation),
    jobOf: (kept) => kept.jobUid,
    ownerOf: (kept) => kept.ownerUid,
    nodeOf: (kept) => kept.nodeName,
    onChange: (key, before, after) => {
      if (roomOf(before) !== roomOf(after)) {
        for (const kept of [before, after]) if (kept !== undefined) changed.capacity(entryOf(key, kept));
      }
      if (before !== undefined && after === undefined) lostPods.heard(before);
      tell(before, after);
    },
  });
  const nodes = new Reflector<JsonObject>({
    ...base,
    path: "/api/v1/nodes",
    labelSelector: "",
    keep: compactNode,
    jobOf: () => null,
    onChange: (name) => changed.capacity({ kind: "node", name }),
  });
  const services = objects("/api/v1/services", keepObject, () => undefined);
  const configMaps = objects("/api/v1/configmaps", keepConfigMap, changed.configMap);
  return { pods, lostPods, nodes, services, configMaps, groups: groupReflector(base, options, tell) };
}

function groupReflector(
  base: Omit<ReflectorOptions<KeptGroup>, "path" | "labelSelector" | "keep" | "jobOf" | "onChange">,
  { gangScheduler = null, installation }: KubeClusterOptions,
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

/** The state of the node of a pod. A node that is gone matters only for a pod that is being deleted. */
function nodeFacts(
  { deleting, nodeName }: PodView,
  nodes: Reflector<JsonObject>,
): Pick<PodView, "nodeGone" | "nodeSilent" | "nodeLabels"> {
  if (nodeName === "" || !nodes.synced) return { nodeGone: false, nodeSilent: null };
  const node = nodes.store.get(nodeName);
  if (node === undefined) return { nodeGone: deleting, nodeSilent: null };
  // Labels are texts, as the API server checks. They are not copied for each pod of each look.
  const nodeLabels = objectAt(objectAt(node, "metadata"), "labels") as Readonly<Record<string, string>>;
  return { nodeGone: false, nodeSilent: silenceOf(node), nodeLabels };
}

/** Kubernetes makes the condition Ready of a node Unknown once the node has not reported for a while. */
function silenceOf(node: JsonObject): PodView["nodeSilent"] {
  const ready = arrayAt(objectAt(node, "status"), "conditions").find((one) => stringAt(one, "type") === "Ready");
  if (stringAt(ready, "status") !== "Unknown") return null;
  const sinceMs = Date.parse(stringAt(ready, "lastTransitionTime") ?? "");
  return { sinceMs: Number.isNaN(sinceMs) ? null : sinceMs };
}

/** The entry of the capacity that a pod belongs to. */
function entryOf(key: string, { nodeName }: KeptPod): EntryKey {
  return nodeName === null ? { kind: "unbound", name: key } : { kind: "node", name: nodeName };
}

/** The facts of a pod that change the capacity. Other changes of a pod do not matter for it. */
function roomOf(kept: KeptPod | undefined): string {
  if (kept === undefined) return "";
  const phase = stringAt(objectAt(kept.compact, "status"), "phase") ?? "";
  const node = stringAt(objectAt(kept.compact, "spec"), "nodeName") ?? "";
  const metadata = objectAt(kept.compact, "metadata");
  const deleting = metadata["deletionTimestamp"] !== undefined;
  return `${stringAt(metadata, "uid")} ${node} ${phase === "Succeeded" || phase === "Failed"} ${deleting}`;
}
