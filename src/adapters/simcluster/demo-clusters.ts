import type { SimNode } from "./sim-cluster.ts";

/** A simulated cluster that `gangway up` starts and registers. */
type DemoCluster = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly flavors: readonly {
    readonly name: string;
    readonly resource: string;
    readonly nodeLabels: Readonly<Record<string, string>>;
  }[];
  /** Its levels, coarse to fine. */
  readonly topology: readonly { readonly name: string; readonly label: string }[];
  readonly nodes: readonly SimNode[];
};

const GPU = "nvidia.com/gpu";
const PRODUCT = "nvidia.com/gpu.product";
const RACK = "sim.gangway.dev/rack";
const HOST = "kubernetes.io/hostname";
const NODES_PER_RACK = 2;

/** Two clusters with different GPUs. Each has one node without GPUs, too. Two nodes with GPUs are a rack. */
export const DEMO_CLUSTERS: readonly DemoCluster[] = [
  gpuCluster({ name: "h100-east", region: "east", model: "h100", product: "NVIDIA-H100-80GB-HBM3", nodes: 2, gpus: 8 }),
  gpuCluster({ name: "a100-west", region: "west", model: "a100", product: "NVIDIA-A100-SXM4-80GB", nodes: 3, gpus: 4 }),
];

/** The queues that `gangway up` creates if they do not exist. They share the GPUs of the two clusters. */
export const DEMO_QUEUES = [
  {
    name: "default",
    strategy: "BEST_EFFORT_FIFO",
    quotas: [
      { flavor: "gpu/h100", resource: GPU, nominal: 8 },
      { flavor: "gpu/a100", resource: GPU, nominal: 8 },
    ],
  },
  {
    name: "research",
    strategy: "BEST_EFFORT_FIFO",
    quotas: [
      { flavor: "gpu/h100", resource: GPU, nominal: 16 },
      { flavor: "gpu/a100", resource: GPU, nominal: 12 },
    ],
  },
] as const;

function gpuCluster(of: {
  readonly name: string;
  readonly region: string;
  readonly model: string;
  readonly product: string;
  readonly nodes: number;
  /** GPUs of a node. */
  readonly gpus: number;
}): DemoCluster {
  const nodeLabels = { [PRODUCT]: of.product };
  const gpuNodes = Array.from({ length: of.nodes }, (_, at) => ({
    name: `${of.model}-${at}`,
    labels: { ...nodeLabels, [HOST]: `${of.model}-${at}`, [RACK]: `r${Math.floor(at / NODES_PER_RACK)}` },
    allocatable: { cpu: "96", memory: "768Gi", pods: "110", [GPU]: String(of.gpus) },
  }));
  const cpuNode = {
    name: "cpu-0",
    labels: { [HOST]: "cpu-0", [RACK]: "r0" },
    allocatable: { cpu: "32", memory: "128Gi", pods: "110" },
  };
  return {
    name: of.name,
    labels: { region: of.region },
    flavors: [{ name: `gpu/${of.model}`, resource: GPU, nodeLabels }],
    topology: [
      { name: "rack", label: RACK },
      { name: "host", label: HOST },
    ],
    nodes: [...gpuNodes, cpuNode],
  };
}
