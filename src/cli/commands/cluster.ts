import { create } from "@bufbuild/protobuf";
import {
  type Cluster,
  ClusterSchema,
  ClusterService,
  GetCapacityResponseSchema,
  ListClustersResponseSchema,
  type Node,
} from "../../gen/gangway/v1/cluster_service_pb.ts";
import { EXIT } from "../exit.ts";
import { ageCell } from "../job-text.ts";
import { show } from "../output.ts";
import { examples, type OutputFormat, onRun, outputOption, type Registrar, type Run } from "../shell.ts";
import type { Column } from "../table.ts";
import { registerClusterChanges } from "./cluster-register.ts";
import { registerGet, registerList, registerVerb } from "./resource.ts";

type Output = { output: OutputFormat };

/** `gangway cluster …`: where gangs run. */
export function registerCluster(registrar: Registrar): void {
  const program = registrar.program
    .command("cluster")
    .description("see, add, update, check and remove clusters, and close them for new gangs")
    .addHelpText(
      "after",
      examples("gangway cluster list", "gangway cluster check h100-east", "gangway cluster cordon h100-east"),
    );
  const group = { ...registrar, program };
  const { listClusters, getCluster, cordonCluster, uncordonCluster } = ClusterService.method;
  registerList(group, {
    description: "list clusters",
    plural: "clusters",
    schema: ListClustersResponseSchema,
    list: (run) => run.client.call(listClusters, {}),
    table: (run, { clusters }) => clustersTable(run, clusters),
  });
  registerGet(group, {
    example: "h100-east",
    schema: ClusterSchema,
    get: async (run, name) => (await run.client.call(getCluster, { name })).cluster ?? create(ClusterSchema, { name }),
    table: (run, cluster) => clustersTable(run, [cluster]),
  });
  registerCapacity(group);
  registerVerb(group, "cordon", {
    description: "admit nothing new; what runs there runs on",
    example: "h100-east",
    done: "cordoned",
    change: (run, name) => run.client.call(cordonCluster, { name }),
  });
  registerVerb(group, "uncordon", {
    description: "admit gangs again",
    example: "h100-east",
    done: "uncordoned",
    change: (run, name) => run.client.call(uncordonCluster, { name }),
  });
  registerClusterChanges(group);
}

function registerCapacity(registrar: Registrar): void {
  const command = registrar.program
    .command("capacity")
    .description("show what a cluster has and what of it is free, node by node")
    .argument("<name>", "name of the cluster")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway cluster capacity h100-east"));
  onRun<Output>(registrar, command, async (run, [name = ""], { output }) => {
    const message = await run.client.call(ClusterService.method.getCapacity, { name });
    const { nodes } = message;
    const resources = [...new Set(nodes.flatMap((node) => Object.keys(node.allocatable)))].sort();
    show(run, output, {
      schema: GetCapacityResponseSchema,
      message,
      names: nodes.map((node) => `node/${node.name}`),
      columns: [
        { title: "NODE" },
        ...resources.map((title) => ({ title: `${title} FREE`, align: "right" }) as const),
        { title: "STATE" },
      ],
      rows: nodes.map((node) => [
        node.name,
        ...resources.map((resource) => freeOf(node, resource)),
        [node.unschedulable ? "unschedulable" : "", ...node.taints].filter((text) => text !== "").join(", "),
      ]),
      none: "no nodes",
    });
    return EXIT.ok;
  });
}

/** Free of all; empty where the node has none of it. */
function freeOf(node: { free: Node["free"]; allocatable: Node["allocatable"] }, resource: string): string {
  const all = node.allocatable[resource];
  return all === undefined ? "" : `${node.free[resource] ?? "0"}/${all}`;
}

const COLUMNS: readonly Column[] = [
  { title: "NAME" },
  { title: "STATE" },
  { title: "NODES", align: "right" },
  { title: "CHANGED", align: "right" },
  { title: "FREE OF FLAVORS" },
];

function clustersTable(run: Run, clusters: readonly Cluster[]) {
  const nowMs = run.deps.clock.nowMs();
  const rows = clusters.map((cluster) => [
    cluster.name,
    stateOf(cluster),
    String(cluster.nodes),
    ageCell(cluster.observeTime, nowMs),
    cluster.flavors.map((flavor) => `${flavor.name} ${freeOf(cluster, flavor.resource)}`).join(", "),
  ]);
  return { columns: COLUMNS, rows, names: clusters.map((cluster) => `cluster/${cluster.name}`) };
}

function stateOf(cluster: Cluster): string {
  const words = [
    cluster.reachable ? "" : "unreachable",
    cluster.cordoned ? "cordoned" : "",
    cluster.simulated ? "simulated" : "",
  ];
  const said = words.filter((word) => word !== "");
  return cluster.reachable && !cluster.cordoned ? ["ready", ...said].join(", ") : said.join(", ");
}
