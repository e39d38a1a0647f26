import { partPatch } from "../../../src/adapters/cluster/parts.ts";
import { mergePatch } from "../../../src/adapters/simcluster/api/patch.ts";
import type { Job } from "../../../src/core/job/job.ts";
import { LABEL } from "../../../src/core/job/labels.ts";
import { defaultSpec } from "../../../src/core/job/request/defaults.ts";
import type { SentSpec } from "../../../src/core/job/request/sent.ts";
import { firstMembers } from "../../../src/core/job/roles.ts";
import { totalReplicas } from "../../../src/core/job/spec.ts";
import type { Admission } from "../../../src/core/job/status.ts";
import type { Registry } from "../../../src/core/kinds/registry.ts";
import { type GangScheduler, REQUESTED_SPEC_ANNOTATION } from "../../../src/core/pods/build/pod-group.ts";
import { type PodView, podView } from "../../../src/core/pods/read/pod-view.ts";
import type { Action, Decision } from "../../../src/core/reconcile/decision.ts";
import type { ConfigMapView, ObjectView, Observed, PodGroupView } from "../../../src/core/reconcile/observed.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { arrayAt, canonicalJson, objectAt, stringAt, stringMapAt } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";

export const CONFIG = {
  kinds: OWN_KINDS,
  build: { installation: "test", clusterDomain: "", initImage: "alpine:3.20", kubectlImage: "kubectl:1" },
};
/** A resource that tokens count, and the flavors of an admission that holds some. */
export const GPU = "nvidia.com/gpu";
export const FLAVORS = { [GPU]: "gpu/h100" };
export const START_MS = 1_700_000_000_000;

/** A waiting job with the defaults of production. */
export function jobOf(sent: SentSpec, changed: Partial<Job> = {}, kinds: Registry = OWN_KINDS): Job {
  const kind = kinds.kindOf(sent.kind)!;
  const created = { type: "Created", status: "True", reason: `${sent.kind}Created`, message: "created" } as const;
  return {
    uid: "job-uid",
    namespace: "ns",
    name: "j",
    project: "p",
    labels: {},
    annotations: {},
    createdBy: "anonymous",
    createTimeMs: START_MS,
    deleteTimeMs: null,
    cancel: null,
    version: 1,
    spec: defaultSpec(sent, { kind, labels: {}, namespaceQueue: null, priorityClass: null }),
    status: {
      phase: "WAITING",
      conditions: [{ ...created, lastUpdateMs: START_MS, lastTransitionMs: START_MS }],
      replicaStatuses: {},
      startTimeMs: null,
      completionTimeMs: null,
      waiting: null,
      failure: null,
      attempts: { user: 0, system: 0, byReplica: {}, notBeforeMs: {}, restartsSeen: {} },
      backoff: null,
    },
    admissions: [],
    ...changed,
  };
}

/** A pod template with one container, which requests so many GPUs. */
export function template(container: string, gpus = 0): JsonObject {
  const resources = gpus === 0 ? {} : { resources: { limits: { [GPU]: String(gpus) } } };
  return { spec: { containers: [{ name: container, image: "img", ...resources }] } };
}

/** The job as the planner records its admission, with all replicas as members. */
export function admit(
  job: Job,
  of: { cluster: string | null; nowMs: number; number: number; flavors?: Admission["flavors"] },
): Job {
  const { cluster, nowMs, number, flavors = {} } = of;
  const admission: Admission = {
    number,
    cluster,
    admitTimeMs: nowMs,
    members: firstMembers(job.spec, totalReplicas(job.spec)),
    flavors,
    flavorLabels: {},
    state: "live",
    tokensReleasedMs: null,
    goneMs: null,
    belowMinSinceMs: nowMs,
  };
  const status = { ...job.status, phase: "ADMITTED" as const, waiting: null };
  return { ...job, status, admissions: [...job.admissions, admission], version: job.version + 1 };
}

/**
 * The job after a decision is recorded, as by the store: admissions of which nothing is left are removed unless they
 * are current.
 */
export function recorded(job: Job, decision: Decision): Job {
  if (decision.record === null) return job;
  const { status, admissions, deleteTimeMs } = decision.record;
  const kept = admissions.filter(
    (one) => one.state !== "undone" || one.tokensReleasedMs === null || one.goneMs === null,
  );
  return { ...job, status, admissions: kept, deleteTimeMs, version: job.version + 1 };
}

type Thing = {
  kind: "pod" | "service" | "anchor" | "configMap" | "podGroup" | "unwatched";
  name: string;
  uid: string;
  json: JsonObject;
  deleting: boolean;
  /** When the deletion was requested. */
  deletedMs?: number;
  /** Since when the node of a pod has not reported. */
  silentMs?: number;
  /** A pod whose node is gone: only a forced deletion removes it. */
  lost?: boolean;
};

/**
 * A cluster with the objects of one job: unique names, uid preconditions, owners, deletion in two steps, and earlier
 * states for caches that lag.
 */
export class TinyCluster {
  readonly name: string;
  /** Its gang scheduler. Null: none. */
  scheduler: GangScheduler | null = null;
  things: Thing[] = [];
  #past: { atMs: number; things: Thing[] }[] = [];
  #made = 0;
  /** Disrupted pods that are gone. */
  readonly #taken: PodView[] = [];
  /** The true number of failures by pod uid: one for a failed pod, and one for each restart. */
  failures = new Map<string, number>();

  constructor(name: string) {
    this.name = name;
  }

  /** Carries out an action as an API server would. An impossible action is ignored, as a worker ignores conflicts. */
  act(action: Action, nowMs: number): void {
    if (action.kind === "updatePodGroup") {
      const thing = this.things.find(({ uid }) => uid === action.uid);
      if (thing === undefined) return;
      const annotations = objectAt(objectAt(action.manifest, "metadata"), "annotations");
      const metadata = { ...objectAt(thing.json, "metadata"), annotations };
      this.change(thing, { json: { ...thing.json, metadata, spec: objectAt(action.manifest, "spec") } });
      return;
    }
    if ("uid" in action) {
      const thing = this.things.find(({ name, uid }) => name === action.name && uid === action.uid);
      if (thing === undefined) return;
      if (action.kind === "deletePod" && action.force) this.things = this.things.filter((one) => one !== thing);
      else if (!thing.deleting) this.change(thing, { deleting: true, deletedMs: nowMs });
      return;
    }
    const kind = thingOf(action);
    const name = stringAt(objectAt(action.manifest, "metadata"), "name")!;
    const known = this.things.find((thing) => thing.kind === kind && thing.name === name && isAlike(thing, action));
    if (known !== undefined) {
      if (action.kind === "createPart" || action.kind === "updatePart") this.#revise(known, action.manifest);
      return;
    }
    const anchor =
      "anchor" in action ? this.things.find((thing) => thing.kind === "anchor" && thing.name === action.anchor) : null;
    if (anchor === undefined || anchor?.deleting) return;
    const owner = anchor === null ? [] : [{ uid: anchor.uid, controller: true }];
    const uid = `${this.name}-${++this.#made}`;
    const metadata = {
      ...objectAt(action.manifest, "metadata"),
      uid,
      ownerReferences: owner,
      creationTimestamp: new Date(nowMs).toISOString(),
    };
    const json = { ...action.manifest, metadata, status: kind === "pod" ? { phase: "Pending" } : {} };
    this.things = [...this.things, { kind, name, uid, json, deleting: false }];
  }

  /** Updates a part by the same patch as the adapter. */
  #revise(thing: Thing, manifest: JsonObject): void {
    const patch = partPatch(thing.json, manifest);
    if (patch !== null) this.change(thing, { json: mergePatch(thing.json, patch) as JsonObject });
  }

  change(thing: Thing, changed: Partial<Thing>): void {
    this.things = this.things.map((one) => (one.uid === thing.uid ? { ...one, ...changed } : one));
  }

  pods(): Thing[] {
    return this.things.filter(({ kind }) => kind === "pod");
  }

  setPod(thing: Thing, status: JsonObject): void {
    this.change(thing, { json: { ...thing.json, status } });
  }

  /** The platform disrupts a pod: Kubernetes sets a condition and deletes it. */
  disrupt(thing: Thing, nowMs: number): void {
    const status = objectAt(thing.json, "status");
    const conditions = [...arrayAt(status, "conditions"), { type: "DisruptionTarget", status: "True" }];
    const json = { ...thing.json, status: { ...status, conditions } };
    this.change(thing, { json, deleting: true, ...(thing.deleting ? {} : { deletedMs: nowMs }) });
  }

  /**
   * Acts as kubelet and garbage collector: removes objects that are being deleted, then objects without their owner.
   */
  collect(): void {
    const going = this.things.filter(({ kind, deleting, lost }) => kind === "pod" && deleting && !lost);
    this.#taken.push(
      ...going
        .map((thing) => podView(withDeletion(thing)))
        .filter(({ disrupted, phase }) => disrupted && phase !== "Succeeded"),
    );
    this.things = this.things.filter(({ deleting, lost }) => !deleting || lost);
    const owners = new Set(this.things.filter(({ kind }) => kind === "anchor").map(({ uid }) => uid));
    for (const thing of this.things) {
      const owner = ownerOf(thing);
      if (owner !== null && !owners.has(owner)) this.change(thing, { deleting: true });
    }
  }

  /** True if only the garbage collector will remove it. */
  isOrphan(thing: Thing): boolean {
    const owner = this.things.find(({ uid }) => uid === ownerOf(thing));
    return owner === undefined || owner.deleting;
  }

  remember(atMs: number): void {
    this.#past.push({ atMs, things: this.things });
  }

  /** The view of a cache that lags by up to `lagMs`. It never goes back in time. */
  observe({ nowMs, lagMs }: { nowMs: number; lagMs: number }): Observed[number] {
    const fresh = { atMs: nowMs, things: this.things };
    const shown = this.#past.findLast(({ atMs }) => atMs <= nowMs - lagMs) ?? this.#past[0] ?? fresh;
    const { things } = lagMs === 0 ? fresh : shown;
    this.#past = this.#past.filter(({ atMs }) => atMs >= (lagMs === 0 ? nowMs : shown.atMs));
    const of = (kind: Thing["kind"]) => things.filter((thing) => thing.kind === kind);
    return {
      cluster: this.name,
      pods: of("pod").map((thing) => ({
        ...podView(withDeletion(thing)),
        nodeGone: thing.lost === true,
        nodeSilent: thing.silentMs === undefined ? null : { sinceMs: thing.silentMs },
      })),
      lost: this.#taken,
      services: of("service").map(objectView),
      configMaps: [...of("anchor"), ...of("configMap")].map(configMapView),
      ...(this.scheduler === null
        ? {}
        : { gang: { scheduler: this.scheduler, groups: of("podGroup").map(groupView) } }),
    };
  }
}

/** What is seen of a cluster, whose nodes have these labels. */
export function withNodeLabels(
  seen: Observed[number],
  nodes: ReadonlyMap<string, Readonly<Record<string, string>>>,
): Observed[number] {
  const pods = seen.pods.map((pod) => {
    const nodeLabels = nodes.get(pod.nodeName);
    return nodeLabels === undefined ? pod : { ...pod, nodeLabels };
  });
  return { ...seen, pods };
}

function thingOf(action: { readonly kind: string; readonly manifest: JsonObject }): Thing["kind"] {
  if (action.kind === "createAnchor") return "anchor";
  if (action.kind === "createPod") return "pod";
  if (action.kind === "createService") return "service";
  if (action.kind === "createPodGroup") return "podGroup";
  return action.manifest["kind"] === "ConfigMap" ? "configMap" : "unwatched";
}

/** The key of an object. Objects that are not watched are of several kinds, and may share a name. */
function isAlike(thing: Thing, action: { readonly manifest: JsonObject }): boolean {
  return thing.kind !== "unwatched" || thing.json["kind"] === action.manifest["kind"];
}

function withDeletion({ json, deleting, deletedMs = START_MS }: Thing): JsonObject {
  if (!deleting) return json;
  const deletionTimestamp = new Date(deletedMs).toISOString();
  return { ...json, metadata: { ...objectAt(json, "metadata"), deletionTimestamp } };
}

function ownerOf({ json }: Thing): string | null {
  const owners = objectAt(json, "metadata")["ownerReferences"];
  const [owner] = Array.isArray(owners) ? owners : [];
  return stringAt(owner, "uid") ?? null;
}

function objectView(thing: Thing): ObjectView {
  const labels = stringMapAt(objectAt(thing.json, "metadata"), "labels");
  const { name, uid, deleting } = thing;
  return {
    name,
    uid,
    labels,
    controllerUid: ownerOf(thing),
    admission: Number(labels[LABEL.admission] ?? 0),
    deleting,
  };
}

function configMapView(thing: Thing): ConfigMapView {
  return { ...objectView(thing), data: canonicalJson(objectAt(thing.json, "data")) };
}

function groupView(thing: Thing): PodGroupView {
  const annotations = stringMapAt(objectAt(thing.json, "metadata"), "annotations");
  const phase = stringAt(objectAt(thing.json, "status"), "phase") ?? "";
  return { ...objectView(thing), phase, requestedSpec: annotations[REQUESTED_SPEC_ANNOTATION] ?? "" };
}

/** A pod's status in a phase, with its container's end or restarts. */
export function podStatus(
  phase: string,
  container: string,
  of: { exitCode?: number; restarts?: number; reason?: string } = {},
): JsonObject {
  const state = of.exitCode === undefined ? { running: {} } : { terminated: { exitCode: of.exitCode } };
  return {
    phase,
    ...(of.reason === undefined ? {} : { reason: of.reason }),
    conditions: phase === "Running" ? [{ type: "Ready", status: "True" }] : [],
    containerStatuses: [{ name: container, restartCount: of.restarts ?? 0, ready: phase === "Running", state }],
  };
}
