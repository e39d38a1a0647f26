/** The embedded service: everything in this process. With main.ts, which loads it only where a service is to run, it knows everyone. */
import { join, resolve } from "node:path";
import { inProcessCounters } from "./adapters/quota/in-process.ts";
import { DEMO_CLUSTERS } from "./adapters/simcluster/demo-clusters.ts";
import { startSimCluster } from "./adapters/simcluster/sim-cluster.ts";
import { installationId } from "./adapters/store/installation.ts";
import { openPglite } from "./adapters/store/pglite.ts";
import { createStore } from "./adapters/store/store.ts";
import type { UpOptions } from "./cli/deps.ts";
import type { RunningService } from "./cli/up.ts";
import {
  type Base,
  connect,
  DEFAULT_QUEUE,
  followClusters,
  joinAsMember,
  nameOfProcess,
  noHints,
  startHealth,
  startPlanner,
  startServer,
  startTelling,
  startWorker,
} from "./compose.ts";
import { startQuota } from "./compose-quota.ts";
import { type Config, EMBEDDED_QUEUES } from "./config.ts";
import { systemClock } from "./runtime/clock.ts";

const clock = systemClock();

/** Starts the whole service in this process, on a database and simulated clusters that keep their state in one directory. */
export async function startEmbedded(options: UpOptions, config: Config): Promise<RunningService> {
  const directory = resolve(options.data ?? config.dataDirectory);
  await using parts = new AsyncDisposableStack();
  // First, because its lock keeps a second process away from everything in the directory.
  const db = await openPglite(join(directory, "db"));
  parts.defer(() => db.close());
  const file = join(directory, "gangway.log");
  const { telemetry, observer, scrape } = await startTelling({ config, file, clock, parts });
  const heard = noHints();
  const store = createStore(db, {
    clock,
    openNamespaces: true,
    defaultQueue: DEFAULT_QUEUE,
    onAppended: () => heard.appended(),
    quotaBounds: config.quotaBounds,
  });
  const installation = await installationId(db);
  for (const queue of EMBEDDED_QUEUES) await store.admin.ensureQueue(queue);
  // Alone with its database: whoever held anything has ended.
  await store.members.forgetAll();
  const processName = nameOfProcess();
  const { leaseMs } = config;
  const member = await joinAsMember({ processName, clock, store, telemetry, parts, takesBuckets: true, leaseMs });
  const tell = {
    appended: () => heard.appended(),
    planner: () => heard.planner(),
    job: (uid: string) => heard.job(uid),
  };
  const base = { processName, clock, store, installation, telemetry, observer, tell, heard, member, parts };
  const followed = await startClusters(base, directory, config);
  const { clusters } = followed;
  const quota = await startQuota(base, async () => inProcessCounters());
  startPlanner(base, quota.planner);
  startWorker(base, clusters, quota, config);
  await startHealth({ config, clock, db, synced: clusters.synced, scrape, parts });
  const listen = options.listen ?? config.listen;
  const api = await startServer(base, followed, quota, {
    listen,
    insecure: options.insecure,
    podConfig: config.podConfig,
    podConfigFile: config.podConfigFile,
  });
  // What is wanted by now is taken at once.
  await member.look();
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

/** Starts the simulated clusters, registers them, and connects to them as to any other; those that people register are followed. */
async function startClusters(base: Base, directory: string, config: Config) {
  const kubeconfigs = new Map<string, string>();
  const given = await Promise.all(
    DEMO_CLUSTERS.map(async ({ name, labels, flavors, nodes }) => {
      const simulated = await startSimCluster({ name, nodes, directory: join(directory, "clusters", name), clock });
      base.parts.defer(() => simulated.close());
      await base.store.clusters.upsertCluster({ name, labels, flavors, simulated: true });
      const kubeconfig = simulated.kubeconfig();
      kubeconfigs.set(name, kubeconfig);
      return connect(base, { name, kubeconfig });
    }),
  );
  return followClusters(base, { config, listens: true, given, simulated: (name) => kubeconfigs.get(name) ?? null });
}
