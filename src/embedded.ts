/** The embedded service: builds it from its parts. With main.ts, which loads it only where a service is to run, the one place that knows everyone. */
import { getRandomValues } from "node:crypto";
import { join, resolve } from "node:path";
import { type ClusterOptions, connectCluster } from "./adapters/cluster/cluster.ts";
import { ClusterRegistry, type RegisteredCluster } from "./adapters/cluster/registry.ts";
import { inProcessCounters } from "./adapters/quota/in-process.ts";
import { DEMO_CLUSTERS } from "./adapters/simcluster/demo-clusters.ts";
import { startSimCluster } from "./adapters/simcluster/sim-cluster.ts";
import type { Db } from "./adapters/store/db.ts";
import { installationId } from "./adapters/store/installation.ts";
import { openPglite } from "./adapters/store/pglite.ts";
import { createStore } from "./adapters/store/store.ts";
import { startApi } from "./api/server.ts";
import type { UpOptions } from "./cli/deps.ts";
import type { RunningService } from "./cli/up.ts";
import { createClusterAdmin } from "./cluster-admin.ts";
import { type Config, EMBEDDED_QUEUES } from "./config.ts";
import { createIntake } from "./intake/intake.ts";
import { createPlanner } from "./planner/planner.ts";
import { systemClock } from "./runtime/clock.ts";
import { createTelemetry, type Telemetry } from "./telemetry/events.ts";
import { createWatch } from "./watch/watch.ts";
import { createWorker } from "./worker/worker.ts";

const DEFAULT_QUEUE = "default";
const INIT_IMAGE = "busybox:1.36";
const clock = systemClock();

/** Hints between stages; each is set once the stage that listens is there. A hint that comes earlier is not needed. */
type Hints = { appended: () => void; planner: () => void; job: (uid: string) => void };

/** Starts the whole service in this process, on a database and simulated clusters that keep their state in one directory. */
export async function startEmbedded(options: UpOptions, config: Config): Promise<RunningService> {
  const directory = resolve(options.data ?? config.dataDirectory);
  await using parts = new AsyncDisposableStack();
  // First, because its lock keeps a second process away from everything in the directory.
  const db = await openPglite(join(directory, "db"));
  parts.defer(() => db.close());
  const telemetry = createTelemetry({ level: config.logLevel, file: join(directory, "gangway.log") });
  const hints: Hints = { appended: () => {}, planner: () => {}, job: () => {} };
  const store = createStore(db, {
    clock,
    openNamespaces: true,
    defaultQueue: DEFAULT_QUEUE,
    onAppended: () => hints.appended(),
  });
  const installation = await installationId(db);
  for (const queue of EMBEDDED_QUEUES) await store.admin.ensureQueue(queue);
  const { registry, simulated } = await startClusters({
    directory,
    installation,
    store,
    telemetry,
    hints,
    parts,
    config,
  });
  const stages = startStages({ db, store, clusters: registry.clusters, installation, telemetry, hints, parts });
  const api = await startApi(
    {
      intake: stages.intake,
      reads: store.reads,
      watch: stages.watch,
      admin: store.admin,
      clusters: createClusterAdmin({
        store,
        registry,
        clock,
        key: config.credentialsKey,
        allowLocal: config.allowLocalKubeconfigs,
        simulated: (name) => simulated.get(name) ?? null,
      }),
      wakePlanner: () => hints.planner(),
      clock,
      onInternalError: (reference, error) => telemetry.callFailed({ reference, error }),
    },
    { listen: options.listen ?? config.listen, insecure: options.insecure },
  );
  parts.defer(() => api.close());
  telemetry.serviceStarted({ address: api.address, directory });
  const running = parts.move();
  return {
    address: api.address,
    close: async () => {
      await running.disposeAsync();
      telemetry.serviceStopped();
    },
  };
}

type Store = ReturnType<typeof createStore>;

type ClusterParts = {
  readonly directory: string;
  readonly installation: string;
  readonly store: Store;
  readonly telemetry: Telemetry;
  readonly hints: Hints;
  readonly parts: AsyncDisposableStack;
  readonly config: Config;
};

/** Starts the simulated clusters, and connects to them as to any other; those that people register are followed in the table. */
async function startClusters(of: ClusterParts) {
  const simulated = new Map<string, string>();
  const connected = await Promise.all(
    DEMO_CLUSTERS.map(async ({ name, labels, flavors, nodes }) => {
      const cluster = await startSimCluster({ name, nodes, directory: join(of.directory, "clusters", name), clock });
      of.parts.defer(() => cluster.close());
      simulated.set(name, cluster.kubeconfig());
      await of.store.clusters.upsertCluster({ name, labels, flavors, simulated: true });
      return connectCluster(clusterOptions(of, { name, kubeconfig: cluster.kubeconfig() }));
    }),
  );
  const onError = (error: unknown, what: string) => of.telemetry.clusterFailed({ cluster: "", what, error });
  const onJobChanged = (uid: string) => of.hints.job(uid);
  const list = () => of.store.clusters.listCredentials();
  const connect = (cluster: RegisteredCluster) => connectRegistered(of, cluster);
  const registry = new ClusterRegistry({ clock, list, connect, onJobChanged, onError }, connected);
  of.parts.defer(async () => {
    await Promise.all(connected.map((cluster) => cluster.close()));
  });
  for (const cluster of connected) cluster.start();
  const stop = new AbortController();
  const following = registry.run(stop.signal);
  of.parts.defer(async () => {
    stop.abort();
    await following;
  });
  return { registry, simulated };
}

async function connectRegistered(of: ClusterParts, { name, credentials }: RegisteredCluster) {
  const { openCredentials } = await import("./adapters/cluster/credentials.ts");
  const { credentialsKey: key, allowLocalKubeconfigs: allowLocal } = of.config;
  const kubeconfig = await openCredentials(credentials, { cluster: name, key, allowLocal });
  return connectCluster(clusterOptions(of, { name, kubeconfig }));
}

function clusterOptions(
  of: ClusterParts,
  { name, kubeconfig }: Pick<ClusterOptions, "name" | "kubeconfig">,
): ClusterOptions {
  return {
    name,
    kubeconfig,
    installation: of.installation,
    clock,
    random: Math.random,
    createNamespaces: true,
    onJobChanged: (uid) => of.hints.job(uid),
    onCapacity: async ({ cluster, capacity, reachable }) => {
      const changed =
        capacity !== null && reachable
          ? await of.store.clusters.recordCapacity({ cluster, capacity, reachable, nowMs: clock.nowMs() })
          : await of.store.clusters.markUnreachable(cluster);
      if (changed) of.hints.planner();
    },
    onError: (error, what) => of.telemetry.clusterFailed({ cluster: name, what, error }),
  };
}

/** Starts the loops of planner, worker and sequencer, and what the API calls. */
function startStages(of: {
  readonly db: Db;
  readonly store: Store;
  readonly clusters: ClusterRegistry["clusters"];
  readonly installation: string;
  readonly telemetry: Telemetry;
  readonly hints: Hints;
  readonly parts: AsyncDisposableStack;
}) {
  const { store, clusters, telemetry, hints } = of;
  const process = `${of.installation}/${globalThis.process.pid}`;
  const wakePlanner = () => hints.planner();
  const wakeJob = (uid: string) => hints.job(uid);
  const planner = createPlanner(
    { clock, store: store.planner, counters: inProcessCounters(), wakeJob },
    { holder: process, onError: (error) => telemetry.loopFailed({ loop: "planner", error }) },
  );
  const worker = createWorker(
    { clock, store: store.worker, clusters, wakePlanner },
    {
      worker: process,
      config: { build: { installation: of.installation, clusterDomain: "", initImage: INIT_IMAGE } },
      onError: (error, what) => telemetry.loopFailed({ loop: `worker ${what}`, error }),
    },
  );
  const watch = createWatch({ clock, store: store.watch }, telemetry);
  const randomBytes = (count: number) => getRandomValues(new Uint8Array(count));
  const intake = createIntake({ clock, store: store.intake, randomBytes, wakePlanner, wakeJob });
  hints.appended = watch.hint;
  hints.planner = planner.wake;
  hints.job = worker.wake;
  const stop = new AbortController();
  const loops = Promise.all([planner.run(stop.signal), worker.run(stop.signal), watch.run(stop.signal)]);
  of.parts.defer(async () => {
    stop.abort();
    await loops;
  });
  return { intake, watch };
}
