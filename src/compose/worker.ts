/** Connects the worker with the store, the clusters and the plugins. */
import type { Clusters } from "../adapters/cluster/clusters.ts";
import { objectStores } from "../adapters/objects/object-stores.ts";
import { surviveUnhandledRejections } from "../adapters/plugins/load-kinds.ts";
import { createPluginHost } from "../adapters/plugins/plugin-host.ts";
import type { Config } from "../config/config.ts";
import { platformFacts } from "../core/kinds/plugin-services.ts";
import type { TaskHolder } from "../core/quota/calls.ts";
import { systemClock } from "../runtime/clock.ts";
import { createWorker } from "../worker/worker.ts";
import { type Base, runLoops } from "./base.ts";
import type { Quota } from "./tokens.ts";
import { blockedMsOf } from "./watchdog.ts";

export function startWorker(
  base: Base,
  clusters: Clusters,
  quota: Quota | null,
  config: Pick<
    Config,
    | "clusterEvents"
    | "images"
    | "leaseMs"
    | "objectPlaces"
    | "moveAfterMs"
    | "pending"
    | "podConfig"
    | "secretsDirectory"
    | "pluginCallMsMax"
  >,
): void {
  const { clock, kinds, store, installation, telemetry, instrumentation, tell, heard, member, parts } = base;
  const { clusterEvents, images, moveAfterMs, pending, secretsDirectory, pluginCallMsMax } = config;
  const worker = createWorker(
    {
      clock,
      store: instrumentation.workerStore(store.worker),
      clusters,
      member,
      blame: store.blame,
      runSection: base.sections.run,
      wakePlanner: tell.planner,
      plugins: createPluginHost<TaskHolder>({
        kinds,
        secretsDirectory,
        wakeJob: tell.job,
        // Servers of objects compare the time of a request with the wall's.
        openStores: (secrets) => objectStores(config.objectPlaces, { secrets, nowMs: systemClock().nowMs }),
        pluginCounted: telemetry.pluginCounted,
        pluginTimed: telemetry.pluginTimed,
        platformOf: (namespace) => structuredClone(platformFacts(config.podConfig, namespace)),
        tokens: quota && tokensOf(quota),
      }),
      failureLogs: { ...store.failureLogs, open: clusters.logs.open, onKept: telemetry.failureLogsKept },
      ...(clusterEvents ? { writeClusterEvents: clusters.writeEvents } : {}),
      ...instrumentation.workerPorts,
    },
    {
      config: {
        kinds,
        build: { installation, clusterDomain: "", initImage: images.init, kubectlImage: images.kubectl },
        pending,
        moveAfterMs,
      },
      pluginCallMsMax,
      blockedMsMax: blockedMsOf(config.leaseMs),
      onSuspects: telemetry.suspectsLeft,
      onSetAside: ({ uid, namespace, name }, { reason }) =>
        telemetry.jobSetAside({ job: `${namespace}/${name}`, uid, reason }),
      onError: (error, what) => telemetry.loopFailed({ loop: `worker ${what}`, error }),
      ...instrumentation.workerOptions,
    },
  );
  surviveUnhandledRejections(parts, kinds, (error) => telemetry.loopFailed({ loop: "plugin", error }));
  heard.job = worker.wake;
  runLoops(parts, worker.run);
}

/** Tokens for plugins. A pool that a plugin registers has the defaults of a new pool for all other settings. */
function tokensOf({ manager, tasks }: Quota) {
  return {
    ...tasks,
    poolExists: async (pool: string) => (await manager.getPool(pool)) !== null,
    registerPool: async (name: string, quota: number, registeredBy: string) => {
      const settings = { name, quota, projectDefault: null, namespaceDefault: null, queue: null };
      const more = { domain: null, defaultLeaseMs: null, maxLeaseMs: null, durability: null };
      return (await manager.registerPool({ ...settings, ...more }, 0, registeredBy)).kind;
    },
  };
}
