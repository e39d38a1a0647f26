/** Serves simulated clusters without nodes, in a separate process. Sends their kubeconfigs; ends when disconnected. */
import { startSimCluster } from "../../../src/adapters/simcluster/sim-cluster.ts";
import { systemClock } from "../../../src/runtime/clock.ts";

const clusters = await Promise.all(
  ["bench-east", "bench-west"].map((name) =>
    startSimCluster({ name, nodes: [], directory: null, clock: systemClock() }),
  ),
);
process.on("disconnect", () => void Promise.all(clusters.map((cluster) => cluster.close())));
process.send?.(clusters.map((cluster) => cluster.kubeconfig()));
