import assert from "node:assert/strict";
import { inProcessCounters } from "../../src/adapters/quota/in-process.ts";
import { SimModel } from "../../src/adapters/simcluster/model.ts";
import { populate, type SimNode } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { Db } from "../../src/adapters/store/db.ts";
import { createStore } from "../../src/adapters/store/store.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { SentJob } from "../../src/core/job/sent.ts";
import { createIntake } from "../../src/intake/intake.ts";
import { createPlanner, type Planner } from "../../src/planner/planner.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { createWorker, type Worker } from "../../src/worker/worker.ts";
import { emptyDatabase } from "../support/database.ts";
import { SimClusterView } from "./sim-cluster-view.ts";
import type { Fate } from "./sim-kube.ts";

export const GPU = "nvidia.com/gpu";
export const FLAVOR_LABEL = "nvidia.com/gpu.product";
const INSTALLATION = "simulation";

/** Time that moves only when the history says so. */
export class VirtualClock implements Clock {
  atMs = 1_750_000_000_000;
  readonly nowMs = () => this.atMs;
  readonly monotonicMs = () => this.atMs;
  /** Whoever sleeps goes on at once, later in the same moment: the history decides when time passes. */
  readonly sleep = () => new Promise<void>((resolve) => setImmediate(resolve));
}

export type WorldOptions = {
  readonly db: Db;
  readonly random: () => number;
  readonly fateOf: () => Fate;
  readonly clusters: readonly {
    readonly name: string;
    readonly flavor: string;
    readonly nodes: number;
    readonly gpus: number;
  }[];
  readonly queues: readonly { readonly name: string; readonly quotas: Readonly<Record<string, number>> }[];
};

/** The whole service, its clusters and its database in one process on one virtual clock. Only the network is not real. */
export class World {
  readonly clock = new VirtualClock();
  readonly clusters: readonly SimClusterView[];
  readonly store: ReturnType<typeof createStore>;
  readonly intake: ReturnType<typeof createIntake>;
  readonly errors: unknown[] = [];
  counters = inProcessCounters();
  planner: Planner;
  worker: Worker;
  #incarnation = 0;

  private constructor(options: WorldOptions) {
    this.store = createStore(options.db, {
      clock: this.clock,
      openNamespaces: true,
      defaultQueue: "default",
      onAppended: () => {},
    });
    this.clusters = options.clusters.map(({ name, flavor, nodes, gpus }) => {
      const model = new SimModel({ nowMs: this.clock.atMs, version: 0, entries: [] }, { random: options.random });
      populate(model, gpuNodes({ flavor, nodes, gpus }));
      return new SimClusterView({ name, model, clock: this.clock, installation: INSTALLATION, fateOf: options.fateOf });
    });
    this.planner = this.#newPlanner();
    this.worker = this.#newWorker();
    const randomBytes = (count: number) => Uint8Array.from({ length: count }, () => Math.floor(options.random() * 256));
    this.intake = createIntake({
      clock: this.clock,
      store: this.store.intake,
      randomBytes,
      wakePlanner: () => {},
      wakeJob: () => {},
    });
  }

  static async create(options: WorldOptions): Promise<World> {
    await emptyDatabase(options.db);
    const world = new World(options);
    for (const { name, flavor } of options.clusters) {
      const flavors = [{ name: `gpu/${flavor}`, resource: GPU, nodeLabels: { [FLAVOR_LABEL]: flavor } }];
      await world.store.clusters.upsertCluster({ name, labels: {}, flavors, simulated: true });
    }
    for (const { name, quotas } of options.queues) {
      const lines = Object.entries(quotas).map(([flavor, nominal]) => ({
        flavor: `gpu/${flavor}`,
        resource: GPU,
        nominal,
      }));
      await world.store.admin.ensureQueue({ name, strategy: "BEST_EFFORT_FIFO", quotas: lines });
    }
    return world;
  }

  async submit(job: SentJob): Promise<void> {
    const outcome = await this.intake.submit({
      job,
      requestId: "",
      validateOnly: false,
      strict: true,
      createdBy: "simulation",
    });
    assert.equal(outcome.kind, "created", JSON.stringify(outcome));
  }

  /** Lets time pass for everybody. */
  pass(ms: number): void {
    this.clock.atMs += ms;
    for (const { model } of this.clusters) model.advance(this.clock.atMs);
  }

  /** The caches of one cluster hear what is there, and tell the worker of every job that they hear of. */
  refresh(cluster: SimClusterView, resources?: Parameters<SimClusterView["refresh"]>[0]): void {
    const before = cluster.jobUids();
    cluster.refresh(resources);
    for (const uid of new Set([...before, ...cluster.jobUids()])) this.worker.wake(uid);
  }

  async observeCapacity(cluster: SimClusterView): Promise<void> {
    await this.store.clusters.recordCapacity({
      cluster: cluster.name,
      capacity: cluster.capacity(),
      reachable: true,
      nowMs: this.clock.atMs,
    });
  }

  /** The worker dies and another takes its buckets; the one that died may not know it yet. */
  replaceWorker(): Worker {
    const before = this.worker;
    this.worker = this.#newWorker();
    return before;
  }

  /** The planner dies with its counters; the next opens them from the ledger. The one that died may not know it yet. */
  replacePlanner(): Planner {
    const before = this.planner;
    this.counters = inProcessCounters();
    this.planner = this.#newPlanner();
    return before;
  }

  async jobs(): Promise<readonly Job[]> {
    const filter = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: "", labels: {} };
    const page = await this.store.reads.listJobs({ filter, order: "create_time", pageSize: 1000, after: null });
    assert.notEqual(page, "badCursor");
    return page === "badCursor" ? [] : page.jobs.map(({ job }) => job);
  }

  #newPlanner(): Planner {
    this.#incarnation += 1;
    return createPlanner(
      {
        clock: this.clock,
        store: this.store.planner,
        counters: this.counters,
        wakeJob: (uid) => this.worker.wake(uid),
      },
      { holder: `planner ${this.#incarnation}`, onError: (error) => this.errors.push(error) },
    );
  }

  #newWorker(): Worker {
    this.#incarnation += 1;
    return createWorker(
      { clock: this.clock, store: this.store.worker, clusters: this.#workerClusters(), wakePlanner: () => {} },
      {
        worker: `worker ${this.#incarnation}`,
        config: { build: { installation: INSTALLATION, clusterDomain: "", initImage: "busybox" } },
        onError: (error) => this.errors.push(error),
      },
    );
  }

  #workerClusters() {
    const byName = new Map(this.clusters.map((cluster) => [cluster.name, cluster]));
    return {
      observe: ({ uid, clusters }: { uid: string; clusters: readonly string[] }) => {
        if (!clusters.every((name) => byName.get(name)?.synced)) return null;
        return this.clusters
          .map((cluster) => cluster.observe(uid))
          .filter(
            (seen) =>
              clusters.includes(seen.cluster) || seen.pods.length + seen.services.length + seen.anchors.length > 0,
          );
      },
      look: async ({ uid, clusters }: { uid: string; clusters: readonly string[] }, signal: AbortSignal) => {
        const looks = clusters.map((name) => byName.get(name)?.look(uid, signal) ?? null);
        const seen = (await Promise.all(looks)).flatMap((cluster) => cluster ?? []);
        const others = this.clusters
          .filter(({ name }) => !clusters.includes(name))
          .map((cluster) => cluster.observe(uid));
        return seen.length < clusters.length ? null : [...seen, ...others];
      },
      act: (action: Parameters<SimClusterView["actions"]["act"]>[0], signal: AbortSignal) => {
        const cluster = byName.get(action.cluster);
        assert.ok(cluster, `a cluster named ${action.cluster}`);
        return cluster.actions.act(action, signal);
      },
      seenJobs: () => [...new Set(this.clusters.flatMap((cluster) => cluster.jobUids()))],
      namespaceOf: (uid: string) =>
        this.clusters.some((cluster) => cluster.jobUids().includes(uid)) ? "default" : null,
    };
  }
}

function gpuNodes(of: { flavor: string; nodes: number; gpus: number }): readonly SimNode[] {
  return Array.from({ length: of.nodes }, (_, at) => ({
    name: `${of.flavor}-${at}`,
    labels: { [FLAVOR_LABEL]: of.flavor },
    allocatable: { cpu: "32", memory: "256Gi", pods: "110", [GPU]: String(of.gpus) },
  }));
}
