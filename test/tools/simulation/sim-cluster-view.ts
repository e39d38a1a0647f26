import { Actions } from "../../../src/adapters/cluster/actions.ts";
import {
  type KeptConfigMap,
  type KeptObject,
  type KeptPod,
  keepConfigMap,
  keepObject,
  keepPod,
} from "../../../src/adapters/cluster/kept-objects.ts";
import { listJob } from "../../../src/adapters/cluster/list-job.ts";
import { LostPods } from "../../../src/adapters/cluster/lost-pods.ts";
import type { OwnObject } from "../../../src/adapters/cluster/own-objects.ts";
import { WriteQueue } from "../../../src/adapters/cluster/write-queue.ts";
import type { SimModel } from "../../../src/adapters/simcluster/model.ts";
import { LABEL } from "../../../src/core/job/labels.ts";
import { capacityEntries } from "../../../src/core/plan/facts/read-capacity.ts";
import type { CapacityEntry } from "../../../src/core/plan/model/capacity-entry.ts";
import type { ObservedCluster } from "../../../src/core/reconcile/observed.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { type Fate, SimKube } from "./sim-kube.ts";

type Seen = {
  readonly pods: readonly KeptPod[];
  readonly services: readonly KeptObject[];
  readonly configMaps: readonly KeptConfigMap[];
};

/**
 * One simulated cluster, as a worker uses it: with the real actions, and with a cache that only `refresh`
 * updates.
 */
export class SimClusterView {
  readonly name: string;
  readonly model: SimModel;
  readonly kube: SimKube;
  readonly installation: string;
  #seen: Seen | null = null;
  readonly #lost: LostPods;
  readonly actions: Actions;

  constructor(options: {
    readonly name: string;
    readonly model: SimModel;
    readonly clock: Clock;
    readonly installation: string;
    readonly fateOf: () => Fate;
    readonly isDark?: () => boolean;
  }) {
    this.name = options.name;
    this.model = options.model;
    this.installation = options.installation;
    this.#lost = new LostPods(() => options.clock.monotonicMs());
    this.kube = new SimKube(options.model, options.fateOf, options.isDark);
    this.actions = new Actions({
      client: this.kube,
      clock: options.clock,
      installation: options.installation,
      seen: (key) =>
        this.#seen?.configMaps.find(({ view, jobUid }) => jobUid !== null && key.endsWith(`/${view.name}`)),
      writes: new WriteQueue({ clock: options.clock, writesMax: 50 }),
      createNamespaces: true,
    });
  }

  /**
   * Updates the cache of these resources. Watches of different resources lag independently. The last state of a pod
   * that is gone is kept, as by the watch of a cluster.
   */
  refresh(resources: readonly (keyof Seen)[] = ["pods", "services", "configMaps"]): void {
    const all = (resource: "pods" | "services" | "configmaps") =>
      [...this.model.store.objects(resource)] as unknown as JsonObject[];
    const known = this.#seen ?? { pods: [], services: [], configMaps: [] };
    const parts = this.#seen === null ? ["pods", "services", "configMaps"] : resources;
    const keep = (object: JsonObject) => keepObject(object, this.installation);
    const pods = parts.includes("pods") ? all("pods").map((pod) => keepPod(pod, this.installation)) : known.pods;
    const uids = new Set(pods.map(({ view }) => view?.uid));
    for (const pod of known.pods) if (!uids.has(pod.view?.uid)) this.#lost.heard(pod);
    this.#seen = {
      pods,
      services: parts.includes("services") ? all("services").map(keep) : known.services,
      configMaps: parts.includes("configMaps")
        ? all("configmaps").map((map) => keepConfigMap(map, this.installation))
        : known.configMaps,
    };
  }

  get synced(): boolean {
    return this.#seen !== null;
  }

  observe(jobUid: string): ObservedCluster {
    const ofJob = <T extends { readonly jobUid: string | null }>(kept: readonly T[]) =>
      kept.filter((one) => one.jobUid === jobUid);
    const lost = this.#lost.ofJob(jobUid);
    return {
      cluster: this.name,
      ...(lost.length === 0 ? {} : { lost }),
      pods: ofJob(this.#seen?.pods ?? []).flatMap(({ view }) => view ?? []),
      services: ofJob(this.#seen?.services ?? []).map(({ view }) => view),
      configMaps: ofJob(this.#seen?.configMaps ?? []).map(({ view }) => view),
    };
  }

  listJob(jobUid: string, signal: AbortSignal): Promise<ObservedCluster | null> {
    return listJob(this.kube, { cluster: this.name, installation: this.installation, jobUid }, signal);
  }

  jobUids(): readonly string[] {
    const seen = this.#seen;
    if (seen === null) return [];
    return [...seen.pods, ...seen.services, ...seen.configMaps].flatMap(({ jobUid }) => jobUid ?? []);
  }

  /** Lists the objects of the cluster itself, not of the cache. */
  entries(): readonly CapacityEntry[] {
    return capacityEntries(this.#all("nodes"), this.#all("pods"));
  }

  /** All pods of this installation that really exist. */
  pods(): readonly JsonObject[] {
    return this.#all("pods");
  }

  /** All objects of this installation that really exist, as `resource/name`. */
  left(): readonly string[] {
    return this.#own().map(({ resource, metadata }) => `${resource}/${metadata.name}`);
  }

  /** The jobs and admissions of those that are not being deleted. */
  owners(): readonly OwnObject[] {
    const staying = this.#own().filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    return staying.flatMap(({ resource, metadata: { labels = {} }, status }) => {
      const jobUid = labels[LABEL.jobUid];
      const runs = resource === "pods" && !["Succeeded", "Failed"].includes(String(status?.["phase"]));
      const { [LABEL.admission]: admission, [LABEL.fence]: fence = null } = labels;
      return jobUid === undefined ? [] : [{ jobUid, admission: Number(admission), fence, runs }];
    });
  }

  #own() {
    return (["pods", "services", "configmaps"] as const).flatMap((resource) =>
      [...this.model.store.objects(resource)]
        .filter(({ metadata }) => metadata.labels?.[LABEL.installation] === this.installation)
        .map(({ metadata, status }) => ({ resource, metadata, status })),
    );
  }

  #all(resource: "pods" | "nodes"): JsonObject[] {
    return [...this.model.store.objects(resource)] as unknown as JsonObject[];
  }
}
