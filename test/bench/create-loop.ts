import type { Clock } from "../../src/runtime/clock.ts";
import { waitUntil } from "../support/bounded.ts";
import type { BenchCluster } from "./bench-cluster.ts";
import type { Rate } from "./measure.ts";

/** The floor: creates as many pods by calls alone, the same number in each cluster, and removes them again. */
export async function createLoop(clusters: readonly BenchCluster[], pods: number, clock: Clock): Promise<Rate> {
  const startMs = clock.monotonicMs();
  const share = Math.ceil(pods / clusters.length);
  await Promise.all(clusters.map((cluster) => cluster.createPods(share)));
  const perSecond = (share * clusters.length * 1000) / (clock.monotonicMs() - startMs);
  await Promise.all(clusters.map((cluster) => cluster.removePods()));
  await waitUntil("the bare pods are gone", async () => (await countPods(clusters)) === 0);
  return { name: "bare create loop", perSecond };
}

/** The pods of the run in all clusters. */
export async function countPods(clusters: readonly BenchCluster[]): Promise<number> {
  const counts = await Promise.all(clusters.map((cluster) => cluster.countPods()));
  return counts.reduce((sum, count) => sum + count, 0);
}
