/** Connects the simulated clusters of `gangway up` as if they were real ones, and registers them with their queues. */
import { join } from "node:path";
import { DEMO_CLUSTERS, DEMO_QUEUES } from "../adapters/simcluster/demo-clusters.ts";
import { startSimCluster } from "../adapters/simcluster/sim-cluster.ts";
import type { Db } from "../adapters/store/db/db.ts";
import { awaitNoOtherWorker, awaitNoSimulation, SIMULATION_LEASE } from "../adapters/store/fleet/sole-worker.ts";
import type { Config } from "../config.ts";
import type { Base } from "./base.ts";
import { connect, followClusters } from "./clusters.ts";

/** Starts the clusters, whose state is in the directory, and follows the clusters that people register. */
export async function startSimulatedClusters(base: Base, directory: string, config: Config) {
  for (const queue of DEMO_QUEUES) await base.store.admin.ensureQueue(queue);
  const kubeconfigs = new Map<string, string>();
  const given = await Promise.all(
    DEMO_CLUSTERS.map(async ({ name, labels, flavors, nodes }) => {
      const state = join(directory, "clusters", name);
      const simulated = await startSimCluster({ name, nodes, directory: state, clock: base.clock });
      base.parts.defer(() => simulated.close());
      await base.store.clusters.upsertCluster({ name, labels, flavors, simulated: true, uid: simulated.uid });
      const kubeconfig = simulated.kubeconfig();
      kubeconfigs.set(name, kubeconfig);
      return connect(base, { name, kubeconfig });
    }),
  );
  return followClusters(base, { config, listens: true, given, simulated: (name) => kubeconfigs.get(name) ?? null });
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
    if (simulated) await store.clusters.markUnreachable(name);
  }
}
