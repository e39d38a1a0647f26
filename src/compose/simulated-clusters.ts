/** Starts the simulated clusters of `gangway up`, which serve newcomers until a real cluster is registered. */
import { join } from "node:path";
import { DEMO_CLUSTERS, DEMO_QUEUES } from "../adapters/simcluster/demo-clusters.ts";
import { type SimCluster, startSimCluster } from "../adapters/simcluster/sim-cluster.ts";
import type { Db } from "../adapters/store/db/db.ts";
import { awaitNoOtherWorker, awaitNoSimulation, SIMULATION_LEASE } from "../adapters/store/fleet/sole-worker.ts";
import { type Base, DEFAULT_QUEUE } from "./base.ts";

/** The clusters that this process simulates now. */
export type Simulations = {
  readonly names: () => readonly string[];
  /** Null: this process does not simulate the cluster. */
  readonly kubeconfigOf: (name: string) => string | null;
  /** Stops the simulation of a cluster; its state stays in its directory. */
  readonly stop: (name: string) => Promise<void>;
};

export const NO_SIMULATIONS: Simulations = { names: () => [], kubeconfigOf: () => null, stop: async () => {} };

/**
 * Starts the simulated clusters, whose state is in the directory, and makes their queues: none if a real cluster is
 * registered, unless `besideReal`; and none that an admin has removed.
 */
export async function startSimulations(
  base: Base,
  { directory, besideReal }: { readonly directory: string; readonly besideReal: boolean },
): Promise<Simulations> {
  const running = new Map<string, SimCluster>();
  const stop = async (name: string) => {
    const cluster = running.get(name);
    running.delete(name);
    await cluster?.close();
  };
  for (const { nodes, ...settings } of DEMO_CLUSTERS) {
    if ((await base.store.clusters.simulate({ ...settings, besideReal })) === null) continue;
    const { name } = settings;
    const state = join(directory, "clusters", name);
    const simulated = await startSimCluster({ name, nodes, directory: state, clock: base.clock });
    running.set(name, simulated);
    base.parts.defer(() => stop(name));
    await base.store.clusters.setUid({ cluster: name, uid: simulated.uid });
  }
  const queues = DEMO_QUEUES.filter(({ name }) => running.size > 0 || name === DEFAULT_QUEUE);
  for (const queue of queues) await base.store.admin.ensureQueue(queue);
  return {
    names: () => [...running.keys()],
    kubeconfigOf: (name) => running.get(name)?.kubeconfig() ?? null,
    stop,
  };
}

/** Keeps other workers of this database away: they cannot reach the clusters that this process simulates. */
export async function holdSimulation({ member, processName, clock }: Base, db: Db): Promise<void> {
  member.lease(SIMULATION_LEASE);
  await member.look();
  await awaitNoOtherWorker(db, processName, clock);
  await member.look();
}

/** For a worker: refuses to start beside a process that simulates clusters, and gives up those of one that ended. */
export async function endSimulation({ store, processName, clock }: Base, db: Db): Promise<void> {
  await awaitNoSimulation(db, processName, clock);
  for (const { name, simulated } of await store.admin.listClusters()) {
    if (simulated) await store.clusters.markUnreachable(name, null);
  }
}
