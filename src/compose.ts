/** What the embedded service and a process of a team's service have in common. With them, the place that knows everyone. */
import { getRandomValues, randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { type Cluster, connectCluster } from "./adapters/cluster/cluster.ts";
import type { Clusters } from "./adapters/cluster/clusters.ts";
import { ClusterRegistry } from "./adapters/cluster/registry.ts";
import type { Db } from "./adapters/store/db.ts";
import { observerLease, PLANNER_LEASE, SEQUENCER_LEASE } from "./adapters/store/leases.ts";
import type { createStore } from "./adapters/store/store.ts";
import { type Api, startApi } from "./api/server.ts";
import { createClusterAdmin } from "./cluster-admin.ts";
import { createPluginHost, outliveForgottenPromises } from "./compose-plugins.ts";
import { followPodConfig } from "./compose-pods.ts";
import type { Config } from "./config.ts";
import { type GangScheduler, gangSchedulerOf } from "./core/pods/pod-group.ts";
import { createIntake } from "./intake/intake.ts";
import { createPlanner } from "./planner/planner.ts";
import type { PlannerQuota } from "./planner/ports.ts";
import type { Clock } from "./runtime/clock.ts";
import { createMember, type Member } from "./runtime/member.ts";
import type { Telemetry } from "./telemetry/events.ts";
import { startHttp } from "./telemetry/http.ts";
import type { Observer } from "./telemetry/observer.ts";
import { startTelemetry } from "./telemetry/start.ts";
import { createWatch } from "./watch/watch.ts";
import { createWorker } from "./worker/worker.ts";

export const DEFAULT_QUEUE = "default";
/** A database that is away does not keep a process from stopping for longer. */
const LEAVE_MS_MAX = 1_500;

export type Store = ReturnType<typeof createStore>;

/** Where a hint goes: to the stage that listens in this process, and to those in others. A hint that nobody hears is not needed. */
export type Hints = { appended: () => void; planner: () => void; job: (uid: string) => void };

export function noHints(): Hints {
  return { appended: () => {}, planner: () => {}, job: () => {} };
}

/** A name that no other process ever has. Process ids come again, and in containers they are all alike. */
export function nameOfProcess(): string {
  return `${hostname()}/${process.pid}/${randomBytes(4).toString("hex")}`;
}

/** Starts what this process tells its operator; lines go to a file, or to standard output for null. */
export async function startTelling(of: {
  readonly config: Config;
  readonly file: string | null;
  readonly clock: Clock;
  readonly parts: AsyncDisposableStack;
}) {
  const { config, file, clock, parts } = of;
  const { logLevel: level, metricsListen, otel } = config;
  const told = await startTelemetry({ level, file, clock, metrics: metricsListen !== null, otel });
  parts.defer(told.close);
  return told;
}

/** Serves `/livez`, `/readyz` and `/metrics` where the configuration asks for them. */
export async function startHealth(of: {
  readonly config: Config;
  readonly clock: Clock;
  readonly db: Db;
  readonly synced: () => boolean;
  readonly scrape: Parameters<typeof startHttp>[0]["scrape"];
  readonly parts: AsyncDisposableStack;
}): Promise<void> {
  const { config, clock, db, synced, scrape, parts } = of;
  const checks = [
    { name: "database", ready: () => db.query("select 1").then(() => true) },
    { name: "clusters", ready: synced },
  ];
  const listen = { health: config.httpListen, metrics: config.metricsListen };
  const http = await startHttp({ clock, checks, scrape }, listen);
  parts.defer(http.close);
  parts.defer(http.drain);
}

/** What the parts of one process share. */
export type Base = {
  readonly processName: string;
  readonly clock: Clock;
  readonly store: Store;
  readonly installation: string;
  readonly telemetry: Telemetry;
  readonly observer: Observer;
  /** Rings everybody who may want to know. */
  readonly tell: Hints;
  /** What is told in this process; each is set once the stage that listens is there. */
  readonly heard: Hints;
  readonly member: Member;
  /** Closed in the reverse order of their start. */
  readonly parts: AsyncDisposableStack;
};

/** Makes this process a member, which it is once this resolves, and until the parts are closed. */
export async function joinAsMember(of: {
  readonly processName: string;
  readonly clock: Clock;
  readonly store: Store;
  readonly telemetry: Telemetry;
  readonly parts: AsyncDisposableStack;
  readonly takesBuckets: boolean;
  readonly leaseMs: number;
}): Promise<Member> {
  const { processName: name, clock, store, telemetry, takesBuckets, leaseMs } = of;
  const onError = (error: unknown) => telemetry.loopFailed({ loop: "member", error });
  const member = createMember({ clock, store: store.members }, { name, takesBuckets, leaseMs, onError });
  await member.look();
  const stop = new AbortController();
  const running = member.run(stop.signal);
  of.parts.defer(async () => {
    stop.abort();
    const left = member.leave().catch(onError);
    await Promise.race([Promise.all([running, left]), clock.sleep(LEAVE_MS_MAX)]);
  });
  return member;
}

/** Connects a cluster: every process hears of its jobs, the one with the observer's lease records its capacity. */
export function connect(
  base: Base,
  cluster: { readonly name: string; readonly kubeconfig: string; readonly gangScheduler?: GangScheduler | null },
  { observes } = { observes: true },
): Cluster {
  const { clock, store, installation, telemetry, observer, tell, heard, member } = base;
  const { name } = cluster;
  const lease = observes ? member.lease(observerLease(name), () => connected.tellCapacity()) : null;
  const connected = connectCluster({
    ...cluster,
    installation,
    clock,
    random: Math.random,
    createNamespaces: true,
    onJobChanged: (uid) => heard.job(uid),
    onCapacity: async ({ capacity, reachable }) => {
      const leaseEpoch = lease?.epoch() ?? null;
      if (leaseEpoch === null) return;
      const changed =
        capacity !== null && reachable
          ? await store.clusters.recordCapacity({
              cluster: name,
              capacity,
              reachable,
              nowMs: clock.nowMs(),
              leaseEpoch,
            })
          : await store.clusters.markUnreachable(name);
      if (changed) tell.planner();
    },
    onError: (error, what) => telemetry.clusterFailed({ cluster: name, what, error }),
    ...observer.kubeClient(name),
  });
  return connected;
}

/** What a process does with clusters: those that are given are connected for it, the others are followed in the table. */
export type ClusterWishes = {
  readonly config: Pick<Config, "credentialsKey" | "allowLocalKubeconfigs">;
  /** Whether this process listens to clusters, as workers do, or only asks them something now and then. */
  readonly listens: boolean;
  readonly given: readonly Cluster[];
  /** The kubeconfig of a cluster that this process simulates; null for any other. */
  readonly simulated: (name: string) => string | null;
};

/** Keeps this process connected to every cluster that the table names, until the parts are closed. */
export async function followClusters(base: Base, wishes: ClusterWishes) {
  const { clock, store, telemetry, observer, heard, parts } = base;
  const { listens, given, simulated } = wishes;
  const { credentialsKey: key, allowLocalKubeconfigs: allowLocal } = wishes.config;
  const registry = new ClusterRegistry(
    {
      clock,
      list: () => store.clusters.listCredentials(),
      connect: async ({ name, credentials, gangScheduler }) => {
        const { openCredentials } = await import("./adapters/cluster/credentials.ts");
        const kubeconfig = await openCredentials(credentials, { cluster: name, key, allowLocal });
        const cluster = { name, kubeconfig, gangScheduler: gangSchedulerOf(gangScheduler) };
        return connect(base, cluster, { observes: listens });
      },
      listens,
      onJobChanged: (uid) => heard.job(uid),
      onError: (error, what) => telemetry.clusterFailed({ cluster: "", what, error }),
    },
    given,
  );
  observer.clusters(() => registry.connected());
  parts.defer(async () => {
    await Promise.all(given.map((cluster) => cluster.close()));
  });
  await registry.refresh();
  for (const cluster of given) cluster.start();
  runLoops(parts, (signal) => registry.run(signal));
  const admin = createClusterAdmin({ store, registry, clock, key, allowLocal, simulated });
  return { clusters: registry.clusters, admin };
}

export type FollowedClusters = Awaited<ReturnType<typeof followClusters>>;

type Loop = (signal: AbortSignal) => Promise<void>;

/** Runs loops until the parts are closed. */
export function runLoops(parts: AsyncDisposableStack, ...loops: readonly Loop[]): void {
  const stop = new AbortController();
  const running = Promise.all(loops.map((loop) => loop(stop.signal)));
  parts.defer(async () => {
    stop.abort();
    await running;
  });
}

export function startPlanner(base: Base, quota: PlannerQuota): void {
  const { clock, store, telemetry, observer, tell, heard, member, parts } = base;
  const lease = member.lease(PLANNER_LEASE, () => planner.wake());
  const planner = createPlanner(
    {
      clock,
      store: observer.plannerStore(store.planner),
      quota,
      lease,
      wakeJob: tell.job,
      ...observer.plannerPorts,
    },
    { onError: (error) => telemetry.loopFailed({ loop: "planner", error }) },
  );
  heard.planner = planner.wake;
  runLoops(parts, planner.run);
}

export function startWorker(
  base: Base,
  clusters: Clusters,
  quota: Parameters<typeof createPluginHost>[0]["quota"],
  config: Pick<Config, "clusterEvents" | "images" | "pending" | "secretsDirectory" | "pluginCallMsMax">,
): void {
  const { clock, store, installation, telemetry, observer, tell, heard, member, parts } = base;
  const { clusterEvents, images, pending, secretsDirectory, pluginCallMsMax } = config;
  const worker = createWorker(
    {
      clock,
      store: observer.workerStore(store.worker),
      clusters,
      member,
      wakePlanner: tell.planner,
      plugins: createPluginHost({ secretsDirectory, wakeJob: tell.job, quota }),
      ...(clusterEvents ? { tellCluster: clusters.tell } : {}),
      ...observer.workerPorts,
    },
    {
      config: {
        build: { installation, clusterDomain: "", initImage: images.init, kubectlImage: images.kubectl },
        pending,
      },
      pluginCallMsMax,
      onError: (error, what) => telemetry.loopFailed({ loop: `worker ${what}`, error }),
      ...observer.workerOptions,
    },
  );
  outliveForgottenPromises(parts, (error) => telemetry.loopFailed({ loop: "plugin", error }));
  heard.job = worker.wake;
  runLoops(parts, worker.run);
}

/** Tokens as the server needs them. */
type ServedQuota = {
  readonly manager: Parameters<typeof startApi>[0]["resources"];
  /** The same admin, whose changes of queues the counters hear of. */
  readonly telling: (admin: Store["admin"]) => Store["admin"];
  readonly startReports: () => void;
};

/** Starts intake, watch with its sequencer, and the server in front of them. */
export async function startServer(
  base: Base,
  { clusters, admin }: FollowedClusters,
  quota: ServedQuota,
  options: { readonly listen: string; readonly insecure: boolean } & Pick<Config, "podConfig" | "podConfigFile">,
): Promise<Api> {
  const { clock, store, telemetry, observer, tell, heard, member, parts } = base;
  const lease = member.lease(SEQUENCER_LEASE, () => watch.hint());
  const watch = createWatch(
    { clock, store: observer.watchStore(store.watch), lease, onGiven: tell.appended },
    telemetry,
  );
  heard.appended = watch.hint;
  runLoops(parts, watch.run);
  const random = (count: number) => getRandomValues(new Uint8Array(count));
  const wakes = { wakePlanner: tell.planner, wakeJob: tell.job };
  const podConfig = followPodConfig({ clock, telemetry }, options);
  runLoops(parts, podConfig.run);
  const intakePorts = { ...wakes, podConfig: podConfig.now, ...observer.intakePorts };
  const intake = createIntake({ clock, store: store.intake, randomBytes: random, ...intakePorts });
  const api = await startApi(
    {
      intake: observer.intake(intake),
      reads: store.reads,
      watch,
      admin: quota.telling(store.admin),
      clusters: admin,
      resources: quota.manager,
      logs: clusters.logs,
      logTemplates: () => podConfig.now().logs,
      wakePlanner: tell.planner,
      clock,
      onInternalError: (reference, error) => telemetry.callFailed({ reference, error }),
      ...observer.apiPorts,
    },
    options,
  );
  parts.defer(() => api.close());
  quota.startReports();
  return api;
}
