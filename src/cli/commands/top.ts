import { parseMilli } from "../../core/pods/quantity.ts";
import { type Cluster, ClusterService } from "../../gen/gangway/v1/cluster_service_pb.ts";
import { type Queue, QueueService } from "../../gen/gangway/v1/queue_service_pb.ts";
import { type Pool, ResourceManager } from "../../gen/gangway/v1/resource_manager_pb.ts";
import { clusterProblems } from "../output/cluster-words.ts";
import { LiveLines } from "../output/live-lines.ts";
import { printPainted } from "../output/print.ts";
import { type UseRow, type UseSection, useLines } from "../output/use-bars.ts";
import { CallError } from "../rpc/call-error.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { refuseUnknownCommand } from "../run/unknown-words.ts";
import { CommandFailure, EXIT, usageFailure } from "../shell/exit.ts";
import { durationOption } from "../shell/options.ts";
import { registerTopJobs } from "./top/jobs.ts";
import { registerTopNodes } from "./top/nodes.ts";

type TopOptions = { readonly once?: boolean; readonly watch?: boolean; readonly interval?: number };

const INTERVAL_MS = 2_000;
const INTERVAL_MS_MIN = 100;
/** More pools than any terminal has rows. */
const POOLS_MAX = 1_000;
/** A file or a pipe gets everything. */
const ROWS_MAX = 10_000;

export function registerTop(registrar: Registrar): void {
  const command = registrar.program
    .command("top")
    .summary("Show what is used of clusters, pools and queues, of nodes, and by jobs")
    .description(
      "Show what is used of clusters, pools and queues, as bars. A terminal shows them anew every two seconds, until " +
        "Ctrl-C; a file or a pipe gets them once. `top jobs` and `top nodes` print a table once.",
    )
    .allowExcessArguments()
    .option("--once", "show them once")
    .option("-w, --watch", "show them anew also in a file or a pipe")
    .addOption(durationOption("--interval <duration>", "time between two looks, e.g. 500ms or 10s (default: 2s)"))
    .addHelpText("after", examples("gangway top", "gangway top --once", "gangway top jobs -A", "gangway top nodes"));
  registerTopJobs({ ...registrar, program: command });
  registerTopNodes({ ...registrar, program: command });
  onRun<TopOptions>(registrar, command, async (run, [word], options) => {
    if (word !== undefined) refuseUnknownCommand(command, word);
    const { once = false, watch = false, interval = INTERVAL_MS } = options;
    if (once && watch) throw usageFailure("--once and --watch cannot be combined");
    if (interval < INTERVAL_MS_MIN) throw usageFailure(`--interval must be at least ${INTERVAL_MS_MIN}ms`);
    if (once || !(watch || run.deps.isTty)) {
      printPainted(run, linesOf(run, await look(run)));
      return EXIT.ok;
    }
    return follow(run, interval);
  });
}

/** Looks again and again, until an interruption. The first look must succeed. */
async function follow(run: Run, intervalMs: number): Promise<number> {
  const { deps } = run;
  const live = new LiveLines(deps.stdoutAsIs, deps.columns);
  const show = (lines: readonly string[]) => (deps.isTty ? live.drawFitted(lines) : printPainted(run, [...lines, ""]));
  let lines = linesOf(run, await look(run));
  for (;;) {
    show(lines);
    await deps.clock.sleep(intervalMs, deps.signal);
    if (deps.signal.aborted) throw new CommandFailure(EXIT.interrupted, []);
    lines = await look(run).then(
      (sections) => linesOf(run, sections),
      (error: unknown) => stillShown(run, lines, error),
    );
  }
}

/** The last lines, above the reason why there are no newer ones. */
function stillShown(run: Run, lines: readonly string[], error: unknown): readonly string[] {
  if (!(error instanceof CallError) || run.deps.signal.aborted) throw error;
  const last = lines.filter((line) => !line.startsWith(AWAY));
  return [...last, `${AWAY}${error.details}`.slice(0, run.deps.columns)];
}

const AWAY = "as last seen; trying again: ";

function linesOf({ deps }: Run, sections: readonly UseSection[]): readonly string[] {
  const { isTty, columns, color, rows } = deps;
  // One row stays for the cursor, and one for a failed look.
  const rowsMax = isTty ? rows - 2 : ROWS_MAX;
  return useLines(sections, { columns: isTty ? columns : null, color }, rowsMax);
}

async function look({ client }: Run): Promise<readonly UseSection[]> {
  const [{ clusters }, { pools }, { queues }] = await Promise.all([
    client.call(ClusterService.method.listClusters, {}),
    client.call(ResourceManager.method.listPools, { pageSize: POOLS_MAX }),
    client.call(QueueService.method.listQueues, {}),
  ]);
  return [
    { title: "CLUSTERS", rows: clusters.flatMap(clusterRows), none: "no clusters" },
    { title: "POOLS", rows: pools.map(poolRow).toSorted(byUse), none: "no pools" },
    { title: "QUEUES", rows: queues.flatMap(queueRows), none: "no queues" },
  ];
}

/** A row for each resource that a flavor of the cluster names; without flavors, for its CPUs. */
function clusterRows(cluster: Cluster): readonly UseRow[] {
  const { name, flavors, allocatable, free } = cluster;
  const named = [...new Set(flavors.map(({ resource }) => resource))];
  return (named.length === 0 ? ["cpu"] : named).map((resource) => {
    const limit = amountOf(allocatable[resource]);
    return {
      name,
      of: resource.split("/").at(-1) ?? resource,
      used: limit - amountOf(free[resource]),
      limit,
      note: clusterProblems(cluster).join(", "),
    };
  });
}

/** A quantity as a number with at most three decimals. */
function amountOf(quantity: string | undefined): number {
  return Number(parseMilli(quantity ?? "0") ?? 0n) / 1000;
}

function poolRow({ name, quota, used, waiters }: Pool): UseRow {
  const waiting = waiters === 0n ? [] : [`${waiters} waiting`];
  const unlimited = quota === undefined ? ["limited by queues"] : [];
  const limit = quota === undefined ? null : Number(quota);
  return { name, of: "", used: Number(used), limit, note: [...waiting, ...unlimited].join(", ") };
}

/** The fullest first: they are those that jobs and callers wait for. */
function byUse(one: UseRow, other: UseRow): number {
  const part = ({ used, limit }: UseRow) => (limit === null || limit === 0 ? -1 : used / limit);
  return part(other) - part(one) || (one.name < other.name ? -1 : 1);
}

/** A row for each flavor. The first one tells of the queue's jobs. */
function queueRows({ name, quotas, use }: Queue): readonly UseRow[] {
  const jobs = `${use?.waitingJobs ?? 0} waiting, ${use?.admittedJobs ?? 0} admitted`;
  if (quotas.length === 0) return [{ name, of: "", used: 0, limit: null, note: `${jobs}, no quota` }];
  return quotas.map(({ flavor, nominal }, at) => ({
    name: at === 0 ? name : "",
    of: flavor,
    used: Number(use?.used[flavor] ?? 0n),
    limit: Number(nominal),
    note: at === 0 ? jobs : "",
  }));
}
