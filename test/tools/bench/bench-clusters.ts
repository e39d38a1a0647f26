import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { controlPlaneBuilt } from "../../kube/build.ts";
import { startControlPlane } from "../../kube/control-plane.ts";
import { BenchCluster } from "./bench-cluster.ts";
import { simulatedKubeconfigs } from "./cluster-servers.ts";

/** The clusters of a bench: files of kubeconfigs, simulated ones, or real control planes of its own. */
export type ClusterSource =
  | { readonly kind: "files"; readonly files: readonly string[] }
  | { readonly kind: "simulated"; readonly count: number }
  | { readonly kind: "planes"; readonly count: number };

/** Connects the clusters, each with nodes of its own that have these GPUs. All of it is removed with the parts. */
export async function benchClusters(
  source: ClusterSource,
  nodes: { readonly count: number; readonly gpus: number },
  parts: AsyncDisposableStack,
): Promise<{ readonly clusters: readonly BenchCluster[]; readonly run: string }> {
  const kubeconfigs = await kubeconfigsOf(source, parts);
  const run = `bench-${randomUUID().slice(0, 8)}`;
  const clusters = kubeconfigs.map((kubeconfig, at) => new BenchCluster(`bench-${at}`, kubeconfig, run));
  for (const cluster of clusters) {
    parts.defer(() => cluster.close());
    await cluster.addNodes(nodes);
  }
  return { clusters, run };
}

async function kubeconfigsOf(source: ClusterSource, parts: AsyncDisposableStack): Promise<readonly string[]> {
  if (source.kind === "files") return source.files.map((file) => readFileSync(file, "utf8"));
  if (source.kind === "simulated") return (await simulatedKubeconfigs(parts)).slice(0, source.count);
  assert.ok(controlPlaneBuilt(), "the control plane is not built: run npm run kube:build, which needs Go");
  const kubeconfigs: string[] = [];
  for (let started = 0; started < source.count; started++) {
    const plane = await startControlPlane();
    parts.defer(() => plane.stop());
    kubeconfigs.push(plane.kubeconfig());
  }
  return kubeconfigs;
}
