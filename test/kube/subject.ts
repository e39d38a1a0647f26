/** The API server under test, real or simulated, behind one interface. */
import { startSimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { clock, gpuNodes, seededRandom } from "../cluster/harness.ts";
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from "./control-plane.ts";

export type Subject = {
  readonly url: string;
  /** An administrator's kubeconfig, with which the suite prepares its tests. */
  readonly kubeconfig: string;
  /** The kubeconfig of the adapter. */
  readonly adapterKubeconfig: string;
  /** The bearer token of the adapter's kubeconfig, and whom it trusts. */
  readonly token: string;
  readonly certificate: string | null;
  /** Makes the server forget older versions, so that watches and pages from them are refused. */
  readonly forget: () => Promise<void>;
  readonly stop: () => Promise<void>;
};

export async function simulatedSubject(): Promise<Subject> {
  const cluster = await startSimCluster({
    name: "sim",
    nodes: gpuNodes(2),
    directory: null,
    clock,
    random: seededRandom(1),
  });
  return {
    url: cluster.url,
    kubeconfig: cluster.kubeconfig(),
    adapterKubeconfig: cluster.kubeconfig(),
    token: "t",
    certificate: null,
    forget: async () => cluster.model.store.history.compact(cluster.model.store.version),
    stop: () => cluster.close(),
  };
}

/** A control plane with two nodes of eight GPUs. */
export async function realSubject(options: ControlPlaneOptions = {}): Promise<Subject & { plane: ControlPlane }> {
  const plane = await startControlPlane(options);
  await addNodes(plane, gpuNodes(2));
  return {
    plane,
    url: plane.url,
    kubeconfig: plane.kubeconfig(),
    adapterKubeconfig: plane.kubeconfig(),
    token: "admin",
    certificate: plane.certificate,
    async forget() {
      // The watch cache of the API server has versions that etcd has forgotten, until the server restarts.
      await plane.compact();
      await plane.restartApiServer();
    },
    stop: () => plane.stop(),
  };
}

type Node = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
};

/** Adds nodes that KWOK simulates. */
export async function addNodes({ client }: Pick<ControlPlane, "client">, nodes: readonly Node[]): Promise<void> {
  for (const node of nodes) {
    const made = await client.request({ method: "POST", path: "/api/v1/nodes", body: nodeManifest(node) });
    if (made.kind === "failed") throw new Error(`node ${node.name}: ${made.message}`);
  }
}

export function nodeManifest({ name, labels, allocatable }: Node): JsonObject {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: { "kubernetes.io/hostname": name, ...labels },
      annotations: { "kwok.x-k8s.io/node": "fake" },
    },
    status: { allocatable, capacity: allocatable },
  };
}
