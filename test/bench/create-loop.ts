import type { Clock } from "../../src/runtime/clock.ts";
import type { BenchCluster } from "./bench-cluster.ts";
import type { Rate } from "./measure.ts";

/** The floor: as many pods in even shares, made by nothing but calls; then they are removed again. */
export async function createLoop(clusters: readonly BenchCluster[], pods: number, clock: Clock): Promise<Rate> {
  const startMs = clock.monotonicMs();
  const share = Math.ceil(pods / clusters.length);
  await Promise.all(clusters.map((cluster) => cluster.createPods(share)));
  const perSecond = (share * clusters.length * 1000) / (clock.monotonicMs() - startMs);
  await Promise.all(clusters.map((cluster) => cluster.removePods()));
  while ((await countPods(clusters)) > 0) await clock.sleep(POLL_MS);
  return { name: "bare create loop", perSecond };
}

const POLL_MS = 50;

/** What is there of the run in all of them. */
export async function countPods(clusters: readonly BenchCluster[]): Promise<number> {
  const counts = await Promise.all(clusters.map((cluster) => cluster.countPods()));
  return counts.reduce((sum, count) => sum + count, 0);
}
