import assert from "node:assert/strict";
import type { Desk } from "../../src/adapters/quota/desk.ts";
import { ledgerOf } from "../../src/adapters/quota/domain-ledger.ts";
import { plannerQuota } from "../../src/adapters/quota/planner-quota.ts";
import { PoolFacts } from "../../src/adapters/quota/pool-facts.ts";
import { reap, UNCONFIRMED_MS } from "../../src/adapters/quota/reap.ts";
import { createTaskTokens } from "../../src/adapters/quota/task-tokens.ts";
import { SimModel } from "../../src/adapters/simcluster/model.ts";
import { populate, type SimNode } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { Db } from "../../src/adapters/store/db.ts";
import { UNCHANGED } from "../../src/adapters/store/register-pool.ts";
import { createStore } from "../../src/adapters/store/store.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { SentJob } from "../../src/core/job/sent.ts";
import { serveKinds } from "../../src/core/kinds/registry.ts";
import type { Counters } from "../../src/core/quota/counters.ts";
import { TICK_MS } from "../../src/core/quota/lease-clock.ts";
import { createIntake } from "../../src/intake/intake.ts";
import { createPlanner, type Planner } from "../../src/planner/planner.ts";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import { createMember, type Lease, type Member } from "../../src/runtime/member.ts";
import type { PluginHost } from "../../src/worker/ports.ts";
import { createWorker, type Worker } from "../../src/worker/worker.ts";
import { emptyDatabase } from "../support/database.ts";
import { LosableCounters } from "../support/losable-counters.ts";
import { soleDesk } from "../support/sole-quota.ts";
import { SimClusterView } from "./sim-cluster-view.ts";
import type { Fate } from "./sim-kube.ts";
import { SERVICE_POOL, SERVICE_SLOTS, SimService, serviceEntry } from "./sim-service.ts";

serveKinds([serviceEntry]);

export const GPU = "nvidia.com/gpu";
export const FLAVOR_LABEL = "nvidia.com/gpu.product";
const INSTALLATION = "simulation";
/** Longer than the longest step of time, so that a member may miss a look without being taken for dead. */
const LEASE_MS = 12_000;

/** How long plugins' calls may take: a time that nobody else waits for, so that the clock knows them by it. */
const CALL_MS_MAX = 29_999;

/** Time that moves only when the history says so. */
export class VirtualClock implements Clock {
  atMs = 1_750_000_000_000;
  readonly nowMs = () => this.atMs;
  readonly monotonicMs = () => this.atMs;
  readonly #deadlines = new Set<() => void>();
  /**
   * Whoever sleeps goes on at once, later in the same moment: the history decides when time passes. Only deadlines of calls of plugins pass when
   * the history says so.
   */
  readonly sleep = (ms?: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      if (ms !== CALL_MS_MAX) return void setImmediate(resolve);
      const pass = () => {
        this.#deadlines.delete(pass);
        resolve();
      };
      this.#deadlines.add(pass);
      signal?.addEventListener("abort", pass, { once: true });
    });

  passDeadlines(): void {
    for (const pass of this.#deadlines) pass();
  }
}

/** How long the reaper waits for a domain that is being opened. */
const OPEN_MS = 30_000;

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
  /** How many processes of each role. */
  readonly processes: { readonly intakes: number; readonly planners: number; readonly workers: number };
  /** What the planners count with; if absent they share counters in memory, which are lost with each planner that is killed. */
  readonly counters?: Counters;
};

type Intake = ReturnType<typeof createIntake>;

/** A process that plans. */
export type PlannerProcess = {
  readonly name: string;
  readonly member: Member;
  readonly planner: Planner;
  readonly desk: Desk;
};

/** A process that works, with caches of its own of every cluster. */
export type WorkerProcess = {
  readonly name: string;
  readonly member: Member;
  readonly worker: Worker;
  readonly views: readonly SimClusterView[];
  readonly observes: ReadonlyMap<string, Lease>;
};

/** The whole service, its clusters and its database on one virtual clock, as if in several processes. Only the network is not real. */
export class World {
  readonly clock = new VirtualClock();
  /** The clusters as they are. */
  readonly clusters: readonly SimClusterView[];
  readonly store: ReturnType<typeof createStore>;
  /** What jobs without pods run at. */
  readonly service: SimService;
  readonly intakes: readonly Intake[];
  readonly errors: unknown[] = [];
  readonly planners: PlannerProcess[];
  readonly workers: WorkerProcess[];
  readonly #options: WorldOptions;
  /** Processes that were killed; what they had sent may still arrive. */
  readonly #killed: (PlannerProcess | WorkerProcess)[] = [];
  readonly #counters = new LosableCounters();
  #incarnation = 0;

  private constructor(options: WorldOptions) {
    this.#options = options;
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
    const { fateOf, random } = options;
    const { clock } = this;
    this.service = new SimService({ nowMs: clock.nowMs, fateOf, random, cutOff: () => clock.passDeadlines() });
    const { intakes, planners, workers } = options.processes;
    this.planners = Array.from({ length: planners }, () => this.#newPlanner());
    this.workers = Array.from({ length: workers }, () => this.#newWorker());
    this.intakes = Array.from({ length: intakes }, () => this.#newIntake());
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
    await world.store.pools.register(SERVICE_SLOTS_POOL, { version: 0, actor: "simulation" });
    for (const { member } of world.processes()) await member.look();
    return world;
  }

  processes(): readonly (PlannerProcess | WorkerProcess)[] {
    return [...this.planners, ...this.workers];
  }

  /** Every process renews what it holds. */
  async renew(): Promise<void> {
    for (const { member } of this.processes()) await member.look();
  }

  /** Any of the processes that take requests. */
  anyIntake(): Intake {
    return this.intakes[Math.floor(this.#options.random() * this.intakes.length)] as Intake;
  }

  async submit(job: SentJob): Promise<void> {
    const outcome = await this.anyIntake().submit({
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

  /** A worker's cache of one cluster hears what is there, and tells the worker of every job that it hears of. */
  refresh({ worker }: WorkerProcess, view: SimClusterView, resources?: Parameters<SimClusterView["refresh"]>[0]): void {
    const before = view.jobUids();
    view.refresh(resources);
    for (const uid of new Set([...before, ...view.jobUids()])) worker.wake(uid);
  }

  /** What was under way arrives, also from processes that are not there any more. */
  deliver(choose: (calls: Parameters<Parameters<SimClusterView["kube"]["deliver"]>[0]>[0]) => typeof calls): void {
    for (const process of [...this.workers, ...this.#killed]) {
      if ("views" in process) for (const { kube } of process.views) kube.deliver(choose);
    }
  }

  /** Whoever has the lease records what a cluster has room for. */
  async observeCapacity(cluster: SimClusterView): Promise<void> {
    for (const { observes } of this.workers) {
      const leaseEpoch = observes.get(cluster.name)?.epoch() ?? null;
      if (leaseEpoch === null) continue;
      await this.store.clusters.recordCapacity({
        cluster: cluster.name,
        capacity: cluster.capacity(),
        reachable: true,
        nowMs: this.clock.atMs,
        leaseEpoch,
      });
    }
  }

  /** A worker is killed without a word and another starts. The one that was killed comes back: it may go on for a moment. */
  async killWorker(at: number): Promise<WorkerProcess> {
    const before = this.workers[at] as WorkerProcess;
    this.workers[at] = this.#newWorker();
    this.#killed.push(before);
    await this.workers[at]?.member.look();
    return before;
  }

  /** The same for a planner, with which the counters are lost. */
  async killPlanner(at: number): Promise<PlannerProcess> {
    const before = this.planners[at] as PlannerProcess;
    this.#counters.lose();
    this.planners[at] = this.#newPlanner();
    this.#killed.push(before);
    await this.planners[at]?.member.look();
    return before;
  }

  /** A process stops as it should: what it held is free at once. */
  async stop({ member }: PlannerProcess | WorkerProcess): Promise<void> {
    await member.leave();
  }

  /** Others have taken a process for dead which does not know it. */
  async takeForDead({ name }: PlannerProcess | WorkerProcess): Promise<void> {
    await this.#options.db.query("delete from workers where name like $1", [`${name}/%`]);
  }

  /** Every process that was killed is known to be dead, and the buckets are shared out among those that live. */
  async becomeWhole(): Promise<void> {
    for (const killed of this.#killed) await this.takeForDead(killed);
    // What belongs to others is left to them a few buckets at a time.
    for (let looks = 0; looks < (this.workers.length === 1 ? 2 : 8); looks += 1) {
      for (const { member } of this.processes()) await member.look();
      for (const { worker } of this.workers) await worker.runOnce();
    }
  }

  /** The counters of the planner that leads. */
  async planAndCount() {
    await this.becomeWhole();
    for (const { planner, desk } of this.planners) {
      if ((await planner.runOnce()) === null) continue;
      await this.reapAll();
      return desk.counters.used();
    }
    return assert.fail("no planner leads");
  }

  /** Takes back every grant whose answer was lost before. */
  async reapAll(): Promise<void> {
    for (let round = 0; round < UNCONFIRMED_MS / TICK_MS + 2; round += 1) await this.reap(TICK_MS);
  }

  /** A round of the reaper, in the first process that has one, as of so much later. */
  async reap(elapsedMs: number): Promise<void> {
    const [first] = this.planners;
    if (first === undefined) return;
    await first.desk.counters.report(await first.desk.domain.openEpoch(OPEN_MS));
    await reap(first.desk, elapsedMs);
  }

  /** Nothing of it goes on in the background. */
  async close(): Promise<void> {
    for (const process of [...this.planners, ...this.#killed]) if ("desk" in process) await process.desk.close();
  }

  async jobs(): Promise<readonly Job[]> {
    const filter = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: "", labels: {} };
    const page = await this.store.reads.listJobs({ filter, order: "create_time", pageSize: 1000, after: null });
    assert.notEqual(page, "badCursor");
    return page === "badCursor" ? [] : page.jobs.map(({ job }) => job);
  }

  #newIntake(): Intake {
    const { random } = this.#options;
    return createIntake({
      clock: this.clock,
      store: this.store.intake,
      randomBytes: (count) => Uint8Array.from({ length: count }, () => Math.floor(random() * 256)),
      wakePlanner: () => {},
      wakeJob: () => {},
    });
  }

  #newMember(takesBuckets: boolean): { readonly name: string; readonly member: Member } {
    this.#incarnation += 1;
    const name = `process ${this.#incarnation}`;
    const member = createMember(
      { clock: this.clock, store: this.store.members },
      {
        name,
        takesBuckets,
        leaseMs: LEASE_MS,
        onError: (error) => this.errors.push(error),
      },
    );
    return { name, member };
  }

  #newPlanner(): PlannerProcess {
    const { name, member } = this.#newMember(false);
    // Domains are opened in real time: history goes on meanwhile.
    const desk = soleDesk({
      clock: systemClock(),
      ledger: ledgerOf("default", this.store.ledger, this.clock),
      counters: this.#options.counters ?? this.#counters.port,
    });
    const planner = createPlanner(
      {
        clock: this.clock,
        store: this.store.planner,
        quota: plannerQuota(desk),
        lease: member.lease("planner"),
        wakeJob: (uid) => {
          for (const { worker } of this.workers) worker.wake(uid);
        },
      },
      { onError: (error) => this.errors.push(error) },
    );
    return { name, member, planner, desk };
  }

  /** Tokens are counted where the planner that stands first counts, as if in its process. */
  #pluginHost(): PluginHost {
    const domains = { desk: async () => this.planners[0]?.desk ?? assert.fail("there is always a planner") };
    const tasks = createTaskTokens({ domains, facts: new PoolFacts(this.clock, this.store.pools) });
    return {
      pluginOf: async () => this.service.plugin,
      secrets: { get: () => assert.fail("no secret is asked for") },
      resources: (holder) => ({
        allocate: ({ pool }) => {
          const wanted = { pool, token: holder.taskName, amount: 1, projectCap: null, namespaceCap: null };
          return tasks.allocate(holder, wanted);
        },
        release: ({ pool }) => tasks.release(holder, { pool, token: holder.taskName }),
      }),
    };
  }

  #newWorker(): WorkerProcess {
    const { name, member } = this.#newMember(true);
    const { fateOf } = this.#options;
    const views = this.clusters.map(
      ({ name: cluster, model }) =>
        new SimClusterView({ name: cluster, model, clock: this.clock, installation: INSTALLATION, fateOf }),
    );
    const worker = createWorker(
      {
        clock: this.clock,
        store: this.store.worker,
        clusters: workerClusters(views),
        member,
        wakePlanner: () => {},
        plugins: this.#pluginHost(),
      },
      {
        config: {
          build: { installation: INSTALLATION, clusterDomain: "", initImage: "busybox", kubectlImage: "kubectl:1" },
        },
        pluginCallMsMax: CALL_MS_MAX,
        onError: (error) => this.errors.push(error),
      },
    );
    const observes = new Map(this.clusters.map((cluster) => [cluster.name, member.lease(`observer/${cluster.name}`)]));
    return { name, member, worker, views, observes };
  }
}

const SERVICE_SLOTS_POOL = { ...UNCHANGED, name: SERVICE_POOL, quota: SERVICE_SLOTS };

type AnchorAt = Pick<Parameters<SimClusterView["actions"]["claim"]>[0], "cluster" | "namespace" | "anchor">;

function workerClusters(views: readonly SimClusterView[]) {
  const byName = new Map(views.map((cluster) => [cluster.name, cluster]));
  return {
    observe: ({ uid, clusters }: { uid: string; clusters: readonly string[] }) => {
      if (!clusters.every((name) => byName.get(name)?.synced)) return null;
      return views
        .map((cluster) => cluster.observe(uid))
        .filter(
          (seen) =>
            clusters.includes(seen.cluster) || seen.pods.length + seen.services.length + seen.configMaps.length > 0,
        );
    },
    look: async ({ uid, clusters }: { uid: string; clusters: readonly string[] }, signal: AbortSignal) => {
      const looks = clusters.map((name) => byName.get(name)?.look(uid, signal) ?? null);
      const seen = (await Promise.all(looks)).flatMap((cluster) => cluster ?? []);
      const others = views.filter(({ name }) => !clusters.includes(name)).map((cluster) => cluster.observe(uid));
      return seen.length < clusters.length ? null : [...seen, ...others];
    },
    act: (action: Parameters<SimClusterView["actions"]["act"]>[0], signal: AbortSignal) => {
      const cluster = byName.get(action.cluster);
      assert.ok(cluster, `a cluster named ${action.cluster}`);
      return cluster.actions.act(action, signal);
    },
    claim: (action: Parameters<SimClusterView["actions"]["claim"]>[0], signal: AbortSignal) => {
      const cluster = byName.get(action.cluster);
      assert.ok(cluster, `a cluster named ${action.cluster}`);
      return cluster.actions.claim(action, signal);
    },
    anchorLives: async (of: AnchorAt, signal: AbortSignal) =>
      (await byName.get(of.cluster)?.actions.anchors.lives({ namespace: of.namespace, ...of.anchor }, signal)) ?? false,
    seenJobs: () => [...new Set(views.flatMap((cluster) => cluster.jobUids()))],
    namespaceOf: (uid: string) => (views.some((cluster) => cluster.jobUids().includes(uid)) ? "default" : null),
  };
}

function gpuNodes(of: { flavor: string; nodes: number; gpus: number }): readonly SimNode[] {
  return Array.from({ length: of.nodes }, (_, at) => ({
    name: `${of.flavor}-${at}`,
    labels: { [FLAVOR_LABEL]: of.flavor },
    allocatable: { cpu: "32", memory: "256Gi", pods: "110", [GPU]: String(of.gpus) },
  }));
}
