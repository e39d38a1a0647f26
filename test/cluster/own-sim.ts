import { after } from "node:test";
import type { KubeClient } from "../../src/adapters/cluster/client.ts";
import type { SimCluster, SimNode } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { clientOf, clock, startSim } from "./harness.ts";

/**
 * A simulated cluster for one test file, and a client that calls it directly. Both are closed after its tests.
 */
export async function ownSim(
  nodes?: readonly SimNode[],
  time: Clock = clock,
): Promise<{ readonly sim: SimCluster; readonly direct: KubeClient }> {
  const sim = await startSim(nodes, 1, time);
  const direct = clientOf(sim.kubeconfig());
  after(async () => {
    await direct.close();
    await sim.close();
  });
  return { sim, direct };
}
