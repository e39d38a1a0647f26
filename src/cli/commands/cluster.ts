import { create } from "@bufbuild/protobuf";
import {
  type Cluster,
  type ClusterFlavor,
  type ClusterGangs,
  ClusterSchema,
  ClusterService,
  ListClustersResponseSchema,
} from "../../gen/gangway/v1/cluster_service_pb.ts";
import { clusterProblems } from "../output/cluster-words.ts";
import { ageCell } from "../output/job-text.ts";
import { printLines } from "../output/print.ts";
import type { Column } from "../output/table.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";
import type { OutputFormat } from "../shell/options.ts";
import { registerAddCluster } from "./cluster/add.ts";
import { registerClusterCapacity } from "./cluster/capacity.ts";
import { registerCheckCluster } from "./cluster/check.ts";
import { topologyText, warnOfFlavors } from "./cluster/flags.ts";
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
    table: (run, { clusters }, output) => clustersTable(run, clusters, output),
  });
  registerGetObject(group, {
    example: "h100-east",
    schema: ClusterSchema,
    get: async (run, name) => (await run.client.call(getCluster, { name })).cluster ?? create(ClusterSchema, { name }),
    table: (run, cluster, output) => clustersTable(run, [cluster], output),
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
  registerDeclareLost(group);
  registerAdopt(group);
  registerRemove(group);
}

type LossOptions = { readonly confirm?: string; readonly dryRun?: boolean };

const DRY_RUN = "change nothing, and say what would become of the gangs there";

function registerDeclareLost(registrar: Registrar): void {
  const command = registrar.program
    .command("declare-lost")
    .description("Say that a cluster that does not answer is lost: gangs that never ran there go elsewhere at once")
    .argument("<name>", "name of the cluster")
    .option("--confirm <name>", "the cluster's name once more, since gangs that go elsewhere do not come back")
    .option("--dry-run", DRY_RUN)
    .addHelpText(
      "after",
      examples("gangway cluster declare-lost east --dry-run", "gangway cluster declare-lost east --confirm east"),
    );
  onRun<LossOptions>(registrar, command, async (run, [name = ""], { confirm = "", dryRun = false }) => {
    if (!dryRun && confirm !== name) throw usageFailure(unconfirmedLoss(name));
    const { gangs } = await run.client.call(ClusterService.method.declareClusterLost, { name, confirm, dryRun });
    printLines(run, dryRun ? gangLines(gangs) : [`cluster/${name} declared lost`]);
    return EXIT.ok;
  });
}

function registerAdopt(registrar: Registrar): void {
  const command = registrar.program
    .command("adopt")
    .summary("After a restore, delete what a cluster has that the restored database does not know")
    .description(
      "After the database was restored from a back-up, delete what a cluster has that the restored database does not " +
        "know: jobs and admissions of after the back-up. No gang is admitted until every cluster is adopted.",
    )
    .argument("<name>", "name of the cluster")
    .option("--dry-run", "change nothing, and say which gangs would be deleted there")
    .addHelpText("after", examples("gangway cluster adopt east --dry-run", "gangway cluster adopt east"));
  onRun<LossOptions>(registrar, command, async (run, [name = ""], { dryRun = false }) => {
    const { gangs } = await run.client.call(ClusterService.method.adoptCluster, { name, dryRun });
    printLines(run, dryRun ? gangLines(gangs, "be deleted") : [`cluster/${name} adopted`]);
    return EXIT.ok;
  });
}

/** What a dry run says: `2 gangs would leave, 5 would stay`, then the names of the first ones. */
function gangLines(gangs: ClusterGangs | undefined, leave = "leave"): readonly string[] {
  const { leaving = 0, staying = 0, firstLeaving = [] } = gangs ?? {};
  const more = leaving - firstLeaving.length;
  return [
    `${leaving} ${leaving === 1 ? "gang" : "gangs"} would ${leave}, ${staying} would stay`,
    ...firstLeaving.map((name) => `  ${name}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
}

function unconfirmedLoss(name: string): string {
  return (
    `gangs of ${name} that were not seen running go elsewhere then, and do not come back. ` +
    `If it is lost: gangway cluster declare-lost ${name} --confirm ${name}`
  );
}

function registerRemove(registrar: Registrar): void {
  const command = registrar.program
    .command("remove")
    .description("Remove a cluster that has no admitted gangs")
    .argument("<name>", "name of the cluster")
    .option("--forget", "the cluster is lost for good: its pods count as gone, and its gangs run elsewhere at once")
    .option("--confirm <name>", "with --forget: the cluster's name once more, since nothing takes this back")
    .option("--dry-run", `with --forget: ${DRY_RUN}`)
    .addHelpText(
      "after",
      examples(
        "gangway cluster remove east",
        "gangway cluster remove east --forget --dry-run",
        "gangway cluster remove east --forget --confirm east",
      ),
    );
  onRun<LossOptions & { forget?: boolean }>(registrar, command, async (run, [name = ""], options) => {
    const { forget = false, confirm = "", dryRun = false } = options;
    if (dryRun && !forget) throw usageFailure("--dry-run is only for --forget");
    if (forget && !dryRun && confirm !== name) throw usageFailure(unconfirmed(name));
    const { gangs } = await run.client.call(ClusterService.method.deleteCluster, { name, forget, confirm, dryRun });
    printLines(run, dryRun ? gangLines(gangs) : [`cluster/${name} ${forget ? "forgotten" : "removed"}`]);
    return EXIT.ok;
  });
}

function unconfirmed(name: string): string {
  return (
    `the gangs of ${name} run elsewhere then, also if their pods still run there. ` +
    `If its machines are off: gangway cluster remove ${name} --forget --confirm ${name}`
  );
}

/** Of `-o wide`: the levels with their labels, as `--topology` takes them. */
const WIDE_COLUMNS: readonly Column[] = [{ title: "LEVELS" }, { title: "LEVELS OF FLAVORS" }];

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

function clustersTable(run: Run, clusters: readonly Cluster[], output: OutputFormat) {
  const isWide = output === "wide";
  for (const cluster of clusters) warnOfFlavors(run, cluster);
  const nowMs = run.deps.clock.nowMs();
  const rows = clusters.map((cluster) => [
    cluster.name,
    stateOf(cluster, nowMs),
    String(cluster.nodes),
    ageCell(cluster.observeTime, nowMs),
    cluster.flavors.map(flavorCell).join(", "),
    ...(isWide ? levelCells(cluster) : []),
  ]);
  return {
    columns: isWide ? [...COLUMNS, ...WIDE_COLUMNS] : COLUMNS,
    rows,
    names: clusters.map((cluster) => `cluster/${cluster.name}`),
  };
}

function levelCells({ topology, flavors }: Cluster): readonly string[] {
  const own = flavors.filter((flavor) => flavor.topology !== undefined);
  const ofFlavors = own.map((flavor) => `${flavor.name}:${topologyText(flavor.topology) || "none"}`);
  return [topologyText(topology), ofFlavors.join(" ")];
}

/** `unreachable for 5m, cordoned`. */
function stateOf(cluster: Cluster, nowMs: number): string {
  const [first, ...more] = clusterProblems(cluster);
  const since = cluster.stateSince === undefined ? "" : ` for ${ageCell(cluster.stateSince, nowMs)}`;
  const problems = first === undefined ? [] : [`${first}${since}`, ...more];
  const words = problems.length === 0 ? ["ready"] : problems;
  return [...words, ...(cluster.simulated ? ["simulated"] : [])].join(", ");
}
