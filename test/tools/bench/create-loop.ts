import type { Clock } from "../../../src/runtime/clock.ts";
import { waitUntil } from "../../support/bounded.ts";
import type { BenchCluster } from "./bench-cluster.ts";
import type { Rate } from "./measure.ts";

/**
 * The floor: creates as many pods, and an anchor for each job, by calls alone, the same number in each cluster. Removes
 * them again. The rate is that of the pods.
 */
export async function createLoop(
  clusters: readonly BenchCluster[],
  { jobs, pods }: { readonly jobs: number; readonly pods: number },
  clock: Clock,
): Promise<Rate> {
  const startMs = clock.monotonicMs();
  const share = { jobs: Math.ceil(jobs / clusters.length), pods: Math.ceil(pods / clusters.length) };
  await Promise.all(clusters.map((cluster) => cluster.createBare(share)));
  const perSecond = (share.pods * clusters.length * 1000) / (clock.monotonicMs() - startMs);
  await Promise.all(clusters.map((cluster) => cluster.removeBare()));
  await waitUntil("the bare pods are gone", async () => (await countPods(clusters)) === 0);
  return { name: "bare create loop", perSecond };
}

/** The pods of the run in all clusters. */
export async function countPods(clusters: readonly BenchCluster[]): Promise<number> {
  const counts = await Promise.all(clusters.map((cluster) => cluster.countPods()));
  return counts.reduce((sum, count) => sum + count, 0);
}
