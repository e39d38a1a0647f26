import { startSimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import { systemClock } from "../../src/runtime/clock.ts";

/**
 * A cluster in a separate process, which a test can kill. Prints its kubeconfig, and serves the directory of its first
 * argument.
 */
const cluster = await startSimCluster({
  name: "served",
  nodes: [{ name: "n1", labels: {}, allocatable: { cpu: "64", "nvidia.com/gpu": "8" } }],
  directory: process.argv[2] ?? null,
  clock: systemClock(),
});
console.log(cluster.kubeconfig());
