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
import { printLines, show } from "../output.ts";
import { examples, type OutputFormat, onRun, outputOption, type Registrar, type Run } from "../shell.ts";
import type { Column } from "../table.ts";
import { registerClusterChanges } from "./cluster-register.ts";

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
  registerList(group);
  registerGet(group);
  registerCapacity(group);
  registerCordon(group);
  registerClusterChanges(group);
}

function registerList(registrar: Registrar): void {
  const command = registrar.program
    .command("list")
    .description("list clusters")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway cluster list"));
  onRun<Output>(registrar, command, async (run, _args, { output }) => {
    const { clusters } = await run.client.call(ClusterService.method.listClusters, {});
    const message = create(ListClustersResponseSchema, { clusters });
    show(run, output, {
      ...clustersTable(run, clusters),
      schema: ListClustersResponseSchema,
      message,
      none: "no clusters",
    });
    return EXIT.ok;
  });
}

function registerGet(registrar: Registrar): void {
  const command = registrar.program
    .command("get")
    .description("show a cluster")
    .argument("<name>", "name of the cluster")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway cluster get h100-east -o yaml"));
  onRun<Output>(registrar, command, async (run, [name = ""], { output }) => {
    const { cluster } = await run.client.call(ClusterService.method.getCluster, { name });
    const message = cluster ?? create(ClusterSchema, { name });
    show(run, output, { ...clustersTable(run, [message]), schema: ClusterSchema, message, none: "" });
    return EXIT.ok;
  });
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

function registerCordon(registrar: Registrar): void {
  const { cordonCluster, uncordonCluster } = ClusterService.method;
  registerChange(registrar, "cordon", {
    does: "admit nothing new; what runs there runs on",
    change: (run, name) => run.client.call(cordonCluster, { name }),
  });
  registerChange(registrar, "uncordon", {
    does: "admit gangs again",
    change: (run, name) => run.client.call(uncordonCluster, { name }),
  });
}

function registerChange(
  registrar: Registrar,
  verb: string,
  { does, change }: { readonly does: string; readonly change: (run: Run, name: string) => Promise<unknown> },
): void {
  const command = registrar.program
    .command(verb)
    .description(does)
    .argument("<name>", "name of the cluster")
    .addHelpText("after", examples(`gangway cluster ${verb} h100-east`));
  onRun<object>(registrar, command, async (run, [name = ""]) => {
    await change(run, name);
    printLines(run, [`cluster/${name} ${verb}ed`]);
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
