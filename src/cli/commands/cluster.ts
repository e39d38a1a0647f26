import { create } from "@bufbuild/protobuf";
import {
  type Cluster,
  type ClusterFlavor,
  ClusterSchema,
  ClusterService,
  ListClustersResponseSchema,
} from "../../gen/gangway/v1/cluster_service_pb.ts";
import { clusterProblems } from "../output/cluster-words.ts";
import { ageCell } from "../output/job-text.ts";
import { printLines } from "../output/print.ts";
import type { Column } from "../output/table.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { registerAddCluster } from "./cluster/add.ts";
import { registerClusterCapacity } from "./cluster/capacity.ts";
import { registerCheckCluster } from "./cluster/check.ts";
import { warnOfFlavors } from "./cluster/flags.ts";
import { registerUpdateCluster } from "./cluster/update.ts";
import { registerGetObject, registerListObjects, registerObjectVerb } from "./named-object-commands.ts";

/** `gangway cluster`: its commands are here and in the folder `cluster`. */
export function registerCluster(registrar: Registrar): void {
  const program = registrar.program
    .command("cluster")
    .description("List, register, check, cordon and remove clusters")
    .addHelpText(
      "after",
      examples("gangway cluster list", "gangway cluster check h100-east", "gangway cluster cordon h100-east"),
    );
  const group = { ...registrar, program };
  const { listClusters, getCluster, cordonCluster, uncordonCluster } = ClusterService.method;
  registerListObjects(group, {
    description: "List clusters",
    plural: "clusters",
    schema: ListClustersResponseSchema,
    list: (run) => run.client.call(listClusters, {}),
    table: (run, { clusters }) => clustersTable(run, clusters),
  });
  registerGetObject(group, {
    example: "h100-east",
    schema: ClusterSchema,
    get: async (run, name) => (await run.client.call(getCluster, { name })).cluster ?? create(ClusterSchema, { name }),
    table: (run, cluster) => clustersTable(run, [cluster]),
  });
  registerClusterCapacity(group);
  registerObjectVerb(group, "cordon", {
    description: "Stop admitting gangs to a cluster; gangs that run there continue",
    example: "h100-east",
    done: "cordoned",
    change: (run, name) => run.client.call(cordonCluster, { name }),
  });
  registerObjectVerb(group, "uncordon", {
    description: "Admit gangs to a cluster again",
    example: "h100-east",
    done: "uncordoned",
    change: (run, name) => run.client.call(uncordonCluster, { name }),
  });
  registerAddCluster(group);
  registerUpdateCluster(group);
  registerCheckCluster(group);
  registerRemove(group);
}

function registerRemove(registrar: Registrar): void {
  const command = registrar.program
    .command("remove")
    .description("Remove a cluster that has no admitted gangs")
    .argument("<name>", "name of the cluster")
    .option("--forget", "the cluster is lost for good: its pods count as gone, and its gangs are admitted elsewhere")
    .addHelpText("after", examples("gangway cluster remove east", "gangway cluster remove east --forget"));
  onRun<{ forget?: boolean }>(registrar, command, async (run, [name = ""], { forget = false }) => {
    await run.client.call(ClusterService.method.deleteCluster, { name, forget });
    printLines(run, [`cluster/${name} ${forget ? "forgotten" : "removed"}`]);
    return EXIT.ok;
  });
}

const COLUMNS: readonly Column[] = [
  { title: "NAME" },
  { title: "STATE" },
  { title: "NODES", align: "right" },
  { title: "CHANGED", align: "right" },
  { title: "FLAVORS (FREE/TOTAL)" },
];

/** `gpu/h100 3/8`: the free and the total amount on the flavor's nodes. */
function flavorCell({ name, nodes, allocatable, free }: ClusterFlavor): string {
  if (allocatable === "") return name;
  return nodes === 0 ? `${name} no nodes` : `${name} ${free}/${allocatable}`;
}

function clustersTable(run: Run, clusters: readonly Cluster[]) {
  for (const cluster of clusters) warnOfFlavors(run, cluster);
  const nowMs = run.deps.clock.nowMs();
  const rows = clusters.map((cluster) => [
    cluster.name,
    stateOf(cluster),
    String(cluster.nodes),
    ageCell(cluster.observeTime, nowMs),
    cluster.flavors.map(flavorCell).join(", "),
  ]);
  return { columns: COLUMNS, rows, names: clusters.map((cluster) => `cluster/${cluster.name}`) };
}

function stateOf(cluster: Cluster): string {
  const problems = clusterProblems(cluster);
  const words = problems.length === 0 ? ["ready"] : problems;
  return [...words, ...(cluster.simulated ? ["simulated"] : [])].join(", ");
}
