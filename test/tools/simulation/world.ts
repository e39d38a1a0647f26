import assert from "node:assert/strict";
import { SimModel } from "../../../src/adapters/simcluster/model.ts";
import { populate, type SimNode } from "../../../src/adapters/simcluster/sim-cluster.ts";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { CLOCK_LEASE, readTime } from "../../../src/adapters/store/fleet/decision-clock.ts";
import { createStore } from "../../../src/adapters/store/store.ts";
import { gangsKey, UNKNOWN_LOSS_POLICY } from "../../../src/core/admin/loss-policies.ts";
import type { LossRule } from "../../../src/core/admin/lost-clusters.ts";
import type { PriorityClassSettings } from "../../../src/core/admin/priority-class.ts";
import type { QueueSettings } from "../../../src/core/admin/queue.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { SentJob } from "../../../src/core/job/request/sent.ts";
import { HOSTNAME_LABEL, type Topology } from "../../../src/core/plan/model/topology.ts";
import type { Counters } from "../../../src/core/quota/counters.ts";
import { TICK_MS } from "../../../src/core/quota/lease-clock.ts";
import { UNCHANGED } from "../../../src/core/quota/pools.ts";
import type { JobToObserve, ObservedCluster } from "../../../src/core/reconcile/observed.ts";
import { createIntake } from "../../../src/intake/intake.ts";
import { createPlanner, type RunningPlanner } from "../../../src/planner/planner.ts";
import type { PlannerStore } from "../../../src/planner/ports.ts";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import type { DecisionClock } from "../../../src/runtime/decision-clock.ts";
import { isCurrent, type SharedTime } from "../../../src/runtime/decision-time.ts";
import { createMember, type Member, type MemberLease } from "../../../src/runtime/member.ts";
import type { QuotaDomain } from "../../../src/tokens/domain/domain.ts";
import { Domains } from "../../../src/tokens/domain/domains.ts";
import { plannerQuota } from "../../../src/tokens/planner-quota.ts";
import { PoolCache } from "../../../src/tokens/pool-cache.ts";
import { reap, UNCONFIRMED_MS } from "../../../src/tokens/reaper/reap.ts";
import { createResourceManager } from "../../../src/tokens/resource-manager.ts";
import { createTaskTokens } from "../../../src/tokens/task-tokens.ts";
import type { PluginHost, WorkerPorts } from "../../../src/worker/ports.ts";
import { createWorker, type Worker } from "../../../src/worker/worker.ts";
import { completeCapacity } from "../../support/complete-capacity.ts";
import { emptyDatabase } from "../../support/database.ts";
import { fleetPlanner } from "../../support/fleet-planner.ts";
import { kindsWith } from "../../support/kinds.ts";
import { LosableCounters } from "../../support/losable-counters.ts";
import { DEAF, soleDomain } from "../../support/sole-quota.ts";
import { VirtualClocks, VirtualMachine } from "../../support/virtual-clocks.ts";
import { SimClusterView } from "./sim-cluster-view.ts";
import type { Fate } from "./sim-kube.ts";
import { SERVICE_POOL, SERVICE_SLOTS, SimService, serviceEntry } from "./sim-service.ts";

const KINDS = kindsWith(serviceEntry);

export const GPU = "nvidia.com/gpu";
export const FLAVOR_LABEL = "nvidia.com/gpu.product";
export const RACK_LABEL = "sim.gangway.dev/rack";
const LEVELS: Topology = [
  { name: "rack", label: RACK_LABEL },
  { name: "host", label: HOSTNAME_LABEL },
];
const INSTALLATION = "simulation";
/** Longer than the longest step of time, so that a member may miss a look without being declared dead. */
export const LEASE_MS = 12_000;

/**
 * The longest time of plugin calls. Nothing else waits for this time, so that the clock recognizes these calls by it.
 */
const CALL_MS_MAX = 29_999;

/** A clock that the history moves. */
export class VirtualClock implements Clock {
  atMs = 1_750_000_000_000;
  readonly nowMs = () => this.atMs;
  readonly monotonicMs = () => this.atMs;
  readonly #deadlines = new Set<() => void>();
  /**
   * Sleeps end at once, since the history decides when time passes. Only deadlines of
   * plugin calls wait for the history.
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

  /**
   * Of a process with this clock, for its worker, which steps woken jobs when the history runs it, and not while others
   * have their turn.
   */
  forWorker({ nowMs, monotonicMs }: Clock): Clock {
    const sleep: Clock["sleep"] = (ms, signal) => (ms === CALL_MS_MAX ? this.sleep(ms, signal) : new Promise(() => {}));
    return { nowMs, monotonicMs, sleep };
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
  /** A queue comes after the one above it. */
  readonly queues: readonly QueueSettings[];
  readonly classes: readonly PriorityClassSettings[];
  /** Gangs that ran in a lost cluster move after so much silence. Omitted: as the service has it. */
  readonly moveAfterMs?: number;
  /** Each process has clocks of its own, which the history steps, as that of the database. Omitted: all share one. */
  readonly ownClocks?: true;
  /** How many processes of each role. */
  readonly processes: { readonly intakes: number; readonly planners: number; readonly workers: number };
  /**
   * The planners' counters. Omitted: they share counters in memory, which are lost with each planner that is
   * killed.
   */
  readonly counters?: Counters;
  /** Sees the calls of the planners to the store. Omitted: nobody does. */
  readonly watch?: (store: PlannerStore) => PlannerStore;
  /** Sees the calls of the workers to the store. Omitted: nobody does. */
  readonly watchWorker?: (store: WorkerStore) => WorkerStore;
};

export type WorkerStore = WorkerPorts["store"];

type Intake = ReturnType<typeof createIntake>;
type Store = ReturnType<typeof createStore>;

/** What every process has. */
type SimProcess = {
  readonly name: string;
  readonly member: Member;
  /** Its decision time. */
  readonly clock: Clock;
  /** Null: it shares the clock of the world. */
  readonly machine: VirtualMachine | null;
};

/** A process with a planner. */
export type PlannerProcess = SimProcess & {
  readonly planner: RunningPlanner;
  readonly domain: QuotaDomain;
};

/** A process with a worker and its own cache of every cluster. */
export type WorkerProcess = SimProcess & {
  readonly worker: Worker;
  readonly views: readonly SimClusterView[];
  readonly observes: ReadonlyMap<string, MemberLease>;
};

/**
 * The whole service, its clusters and its database on one virtual clock, as if in several processes. Only the network
 * is not real.
 */
export class World {
  readonly clock = new VirtualClock();
  /** The clock of the database, and those of processes with clocks of their own. */
  readonly clocks = new VirtualClocks();
  /** The clusters themselves. */
  readonly clusters: readonly SimClusterView[];
  readonly store: ReturnType<typeof createStore>;
  /** The service where jobs without pods run. */
  readonly service: SimService;
  readonly intakes: readonly Intake[];
  /** The processes of the intakes. Empty: they are no members, since they share the clock of the world. */
  readonly apis: SimProcess[] = [];
  /** What callers do with tokens, in a process of its own. */
  readonly resources: ReturnType<typeof createResourceManager>;
  readonly errors: unknown[] = [];
  /** The clusters that nothing reaches now. */
  readonly dark = new Set<string>();
  /** What the workers have read of lost clusters. */
  losses: Losses = { lost: new Map(), policies: new Map() };
  readonly planners: PlannerProcess[];
  readonly workers: WorkerProcess[];
  readonly #options: WorldOptions;
  /** Processes that were killed. Their calls may still arrive. */
  readonly #killed: (PlannerProcess | WorkerProcess)[] = [];
  readonly #counters = new LosableCounters();
  readonly #domains: Domains;
  #incarnation = 0;
  /** What the database says to a process that starts now. */
  #time: SharedTime = { databaseMs: 0, correctionMs: 0, notedMs: 0 };

  private constructor(options: WorldOptions) {
    this.#options = options;
    this.clocks.trueMs = this.clock.atMs;
    this.store = this.#storeOf(this.clock);
    this.clusters = options.clusters.map(({ name, flavor, nodes, gpus }) => {
      const model = new SimModel({ nowMs: this.clock.atMs, version: 0, entries: [] }, { random: options.random });
      populate(model, gpuNodes({ flavor, nodes, gpus }));
      return this.#viewOf({ name, model }, this.clock);
    });
    const { fateOf, random } = options;
    const { clock } = this;
    this.service = new SimService({ nowMs: clock.nowMs, fateOf, random, cutOff: () => clock.passDeadlines() });
    const { intakes, planners, workers } = options.processes;
    this.planners = Array.from({ length: planners }, () => this.#newPlanner());
    this.workers = Array.from({ length: workers }, () => this.#newWorker());
    this.intakes = Array.from({ length: intakes }, () => this.#newIntake());
    this.#domains = this.#newDomains();
    this.resources = createResourceManager({
      clock: this.apis[0]?.clock ?? clock,
      domains: this.#domains,
      store: this.store.pools,
      events: DEAF,
      limitChanges: { changed: async () => {} },
      wakePlanner: () => {},
    });
  }

  static async create(options: WorldOptions): Promise<World> {
    await emptyDatabase(options.db);
    const world = new World(options);
    for (const { name, flavor } of options.clusters) {
      const flavors = [{ name: `gpu/${flavor}`, resource: GPU, nodeLabels: { [FLAVOR_LABEL]: flavor } }];
      await world.store.clusters.simulate({ name, labels: {}, flavors, topology: LEVELS });
    }
    for (const queue of options.queues) {
      const { kind } = await world.store.admin.createQueue(queue);
      assert.equal(kind, "done", `queue ${queue.name}`);
    }
    for (const made of options.classes) {
      assert.equal((await world.store.priorityClasses.create(made, "simulation")).kind, "done");
    }
    await world.store.pools.register(SERVICE_SLOTS_POOL, { version: 0, actor: "simulation" });
    for (const { member } of [...world.processes(), ...world.apis]) await member.look();
    return world;
  }

  processes(): readonly (PlannerProcess | WorkerProcess)[] {
    return [...this.planners, ...this.workers];
  }

  /** Every process renews its leases. */
  async renew(): Promise<void> {
    for (const { member } of [...this.processes(), ...this.apis]) await member.look();
  }

  /** One of the processes that take requests. */
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

  /** Moves the clock. */
  pass(ms: number): void {
    this.clock.atMs += ms;
    this.clocks.trueMs += ms;
    for (const { model } of this.clusters) model.advance(this.clock.atMs);
  }

  /** Updates a worker's cache of one cluster, and wakes the worker for every job in it. */
  refresh({ worker }: WorkerProcess, view: SimClusterView, resources?: Parameters<SimClusterView["refresh"]>[0]): void {
    const before = view.jobUids();
    view.refresh(resources);
    for (const uid of new Set([...before, ...view.jobUids()])) worker.wake(uid);
  }

  /** Delivers late calls, also those of processes that are gone. */
  deliver(choose: (calls: Parameters<Parameters<SimClusterView["kube"]["deliver"]>[0]>[0]) => typeof calls): void {
    for (const process of [...this.workers, ...this.#killed]) {
      if ("views" in process) for (const { kube } of process.views) kube.deliver(choose);
    }
  }

  /** The process with the lease records a cluster's capacity. */
  async observeCapacity(cluster: SimClusterView): Promise<void> {
    for (const { observes } of this.workers) {
      const leaseEpoch = observes.get(cluster.name)?.epoch() ?? null;
      if (leaseEpoch === null) continue;
      await this.store.clusters.recordCapacity(completeCapacity(cluster.name, cluster.entries()), leaseEpoch);
    }
  }

  /**
   * The process with the lease counts that a cluster has not answered for so long. Returns the clusters that are lost
   * by that.
   */
  async observeSilence(cluster: string, ms: number, rule: LossRule): Promise<readonly string[]> {
    for (const { observes } of this.workers) {
      const leaseEpoch = observes.get(cluster)?.epoch() ?? null;
      if (leaseEpoch === null) continue;
      await this.store.clusters.recordCapacity({ cluster, reachable: false }, leaseEpoch);
      return (await this.store.clusters.countSilence({ cluster, ms, leaseEpoch }, rule)).lost;
    }
    return [];
  }

  /** The workers read which clusters are lost, and look at the jobs there. */
  async readLosses(): Promise<void> {
    this.losses = await this.store.clusters.listCredentials();
    for (const { uid } of await this.jobs()) for (const { worker } of this.workers) worker.wake(uid);
  }

  /**
   * A worker crashes and another starts. The crashed worker comes back: it may go on for a
   * moment.
   */
  async killWorker(at: number): Promise<WorkerProcess> {
    const before = this.workers[at] as WorkerProcess;
    this.#killed.push(before);
    await this.#readTime(before);
    this.workers[at] = this.#newWorker();
    await this.workers[at]?.member.look();
    return before;
  }

  /** The same for a planner. Its counters are lost. */
  async killPlanner(at: number): Promise<PlannerProcess> {
    const before = this.planners[at] as PlannerProcess;
    this.#counters.lose();
    this.#killed.push(before);
    await this.#readTime(before);
    this.planners[at] = this.#newPlanner();
    await this.planners[at]?.member.look();
    return before;
  }

  /** The counters lose everything, as Redis does that starts without its data. */
  loseCounters(): void {
    this.#counters.lose();
  }

  /** Every planner finds that it cannot trust its epoch. The next one begins, so that the seed decides what follows. */
  async loseEpochs(): Promise<void> {
    for (const { domain } of this.planners) {
      const { current } = domain.epochs;
      if (current !== null) domain.epochs.lost(current, "simulated");
    }
    for (const { domain } of this.planners) await domain.epochs.openEpoch(OPEN_MS);
  }

  /** A process stops in order: its leases are free at once. */
  async stop({ member }: PlannerProcess | WorkerProcess): Promise<void> {
    await member.leave();
  }

  /** Other processes declare a process dead that does not know it. */
  async takeForDead({ name }: PlannerProcess | WorkerProcess): Promise<void> {
    await this.#options.db.query("delete from workers where name like $1", [`${name}/%`]);
  }

  /** Lets all killed processes be declared dead, and their buckets be taken by live ones. */
  async becomeWhole(): Promise<void> {
    for (const killed of this.#killed) await this.takeForDead(killed);
    // Buckets are handed over a few at a time.
    for (let looks = 0; looks < (this.workers.length === 1 ? 2 : 8); looks += 1) {
      for (const { member } of this.processes()) await member.look();
      for (const { worker } of this.workers) await worker.runOnce();
    }
  }

  /** The counters of the leading planner. */
  async planAndCount() {
    await this.becomeWhole();
    for (const { planner, domain } of this.planners) {
      if ((await planner.runOnce()) === null) continue;
      await this.reapAll();
      return domain.counters.used();
    }
    return assert.fail("no planner leads");
  }

  /** Frees every grant whose answer was lost. */
  async reapAll(): Promise<void> {
    for (let round = 0; round < UNCONFIRMED_MS / TICK_MS + 2; round += 1) await this.reap(TICK_MS);
  }

  /** Runs a round of the reaper in the first process that has one, at a later time. */
  async reap(elapsedMs: number): Promise<void> {
    const [first] = this.planners;
    if (first === undefined) return;
    await first.domain.counters.report(await first.domain.epochs.openEpoch(OPEN_MS));
    await reap(first.domain, elapsedMs);
  }

  /** Waits until nothing runs in the background. */
  async close(): Promise<void> {
    for (const process of [...this.planners, ...this.#killed]) if ("domain" in process) await process.domain.close();
    await this.#domains.close();
  }

  async jobs(): Promise<readonly Job[]> {
    const filter = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: null, labels: {} };
    const page = await this.store.reads.listJobs({ filter, order: "create_time", pageSize: 1000, after: null });
    assert.notEqual(page, "badCursor");
    return page === "badCursor" ? [] : page.jobs.map(({ job }) => job);
  }

  #newIntake(): Intake {
    const { random, ownClocks } = this.#options;
    const api = ownClocks === true ? this.#newMember(false) : null;
    if (api !== null) this.apis.push(api);
    const { clock, store } = api ?? this;
    return createIntake({
      clock,
      kinds: KINDS,
      store: store.intake,
      randomBytes: (count) => Uint8Array.from({ length: count }, () => Math.floor(random() * 256)),
      wakePlanner: () => {},
      wakeJob: () => {},
    });
  }

  #storeOf(clock: Pick<Clock, "nowMs">): Store {
    return createStore(this.#options.db, {
      clock,
      kinds: KINDS,
      openNamespaces: true,
      defaultQueue: "default",
      onAppended: () => {},
    });
  }

  /** What a process reads that starts now. While the correction is not current, it waits until the others renew. */
  async #readTime(ended: SimProcess): Promise<void> {
    if (this.#options.ownClocks !== true) return;
    const read = async () => this.clocks.read(await readTime(this.#options.db));
    const others = [...this.processes(), ...this.apis].filter((one) => one !== ended);
    this.#time = await read();
    // The lease passes to another one after the lease time.
    for (let looks = 0; looks < 15 && !isCurrent(this.#time, 3_000); looks += 1) {
      this.pass(1_000);
      for (const { member } of others) await member.look();
      this.#time = await read();
    }
  }

  #newMember(takesBuckets: boolean): SimProcess & { readonly store: Store } {
    this.#incarnation += 1;
    const name = `process ${this.#incarnation}`;
    const machine = this.#options.ownClocks === true ? new VirtualMachine(this.clocks, 1e6 * this.#incarnation) : null;
    const own: DecisionClock | null = machine === null ? null : machine.start(this.#time);
    const clock: Clock = own === null ? this.clock : { ...own, sleep: this.clock.sleep };
    const store = own === null ? this.store : this.#storeOf(own);
    const member = createMember(
      {
        clock,
        store: this.clocks.memberStore(this.store.members),
        ...(own === null ? {} : { kept: { clock: own, lease: CLOCK_LEASE } }),
      },
      {
        name,
        takesBuckets,
        leaseMs: LEASE_MS,
        onError: (error) => this.errors.push(error),
      },
    );
    return { name, member, clock, machine, store };
  }

  #newPlanner(): PlannerProcess {
    const { store, ...process } = this.#newMember(false);
    const { member, clock } = process;
    // Domains are opened in real time, while the history goes on.
    const domain = soleDomain({
      clock: systemClock(),
      ledger: store.ledgerOf("default", clock),
      counters: this.#options.counters ?? this.#counters.port,
    });
    const planner = createPlanner(
      {
        clock,
        store: this.#options.watch?.(store.planner) ?? store.planner,
        fleet: fleetPlanner(store.planner),
        quota: plannerQuota(domain),
        lease: member.lease("planner"),
        wakeJob: (uid) => {
          for (const { worker } of this.workers) worker.wake(uid);
        },
      },
      { onError: (error) => this.errors.push(error) },
    );
    return { ...process, planner, domain };
  }

  /** Domains are opened in real time, while the history goes on. */
  #newDomains(): Domains {
    return new Domains({
      clock: { ...systemClock(), nowMs: this.clock.nowMs },
      random: () => 0,
      ledgerOf: this.store.ledgerOf,
      store: this.store.pools,
      countersOf: async () => this.#options.counters ?? this.#counters.port,
      events: DEAF,
    });
  }

  /** Tokens are counted by the leading planner's counters, as if in its process. */
  #pluginHost(): PluginHost {
    const domains = { domain: async () => this.planners[0]?.domain ?? assert.fail("there is always a planner") };
    const tasks = createTaskTokens({ domains, cache: new PoolCache(this.clock, this.store.pools) });
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

  #viewOf({ name, model }: Pick<SimClusterView, "name" | "model">, clock: Clock): SimClusterView {
    const { fateOf } = this.#options;
    const isDark = () => this.dark.has(name);
    return new SimClusterView({ name, model, clock, installation: INSTALLATION, fateOf, isDark });
  }

  #newWorker(): WorkerProcess {
    const { store, ...process } = this.#newMember(true);
    const { member, clock } = process;
    const views = this.clusters.map((cluster) => this.#viewOf(cluster, clock));
    const worker = createWorker(
      {
        clock: this.clock.forWorker(clock),
        store: this.#options.watchWorker?.(store.worker) ?? store.worker,
        clusters: workerClusters(views, () => this.losses),
        member,
        blame: this.store.blame,
        wakePlanner: () => {},
        plugins: this.#pluginHost(),
      },
      {
        config: {
          kinds: KINDS,
          build: { installation: INSTALLATION, clusterDomain: "", initImage: "busybox", kubectlImage: "kubectl:1" },
          ...(this.#options.moveAfterMs === undefined ? {} : { moveAfterMs: this.#options.moveAfterMs }),
        },
        pluginCallMsMax: CALL_MS_MAX,
        onError: (error) => this.errors.push(error),
      },
    );
    const observes = new Map(this.clusters.map((cluster) => [cluster.name, member.lease(`observer/${cluster.name}`)]));
    return { ...process, worker, views, observes };
  }
}

const SERVICE_SLOTS_POOL = { ...UNCHANGED, name: SERVICE_POOL, quota: SERVICE_SLOTS };

type AnchorAt = Pick<Parameters<SimClusterView["actions"]["claim"]>[0], "cluster" | "namespace" | "anchor">;

/** What workers know of clusters that are lost. */
type Losses = Pick<Awaited<ReturnType<Store["clusters"]["listCredentials"]>>, "lost" | "policies">;

function workerClusters(views: readonly SimClusterView[], losses: () => Losses) {
  const byName = new Map(views.map((cluster) => [cluster.name, cluster]));
  const lossIn = (cluster: string, of?: JobToObserve["of"]): ObservedCluster | null => {
    const { lost, policies } = losses();
    const loss = lost.get(cluster);
    if (loss === undefined) return null;
    const policy = (of === undefined ? undefined : policies.get(gangsKey(of))) ?? UNKNOWN_LOSS_POLICY;
    return { cluster, loss: { ...loss, policy }, pods: [], services: [], configMaps: [] };
  };
  const others = ({ uid, clusters }: JobToObserve) =>
    views
      .filter(({ name }) => !clusters.includes(name) && lossIn(name) === null)
      .map((cluster) => cluster.observe(uid))
      .filter((seen) => seen.pods.length + seen.services.length + seen.configMaps.length > 0);
  return {
    observe: (job: JobToObserve) => {
      const { uid, of, clusters } = job;
      const seen = clusters.map((name) => {
        const cluster = byName.get(name);
        return lossIn(name, of) ?? (cluster?.synced ? cluster.observe(uid) : null);
      });
      const known = seen.flatMap((one) => one ?? []);
      return known.length < clusters.length ? null : [...known, ...others(job)];
    },
    listJob: async (job: JobToObserve, signal: AbortSignal) => {
      const { uid, of, clusters } = job;
      const lists = clusters.map((name) => lossIn(name, of) ?? byName.get(name)?.listJob(uid, signal) ?? null);
      const known = (await Promise.all(lists)).flatMap((one) => one ?? []);
      return known.length < clusters.length ? null : [...known, ...others(job)];
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
    labels: { [FLAVOR_LABEL]: of.flavor, [RACK_LABEL]: `r${at % 2}` },
    allocatable: { cpu: "32", memory: "256Gi", pods: "110", [GPU]: String(of.gpus) },
  }));
}
