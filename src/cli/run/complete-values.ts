/** The values of options and arguments: words of this program, and names that the service or the contexts have. */
import type { Command, Option } from "commander";
import { ClusterService, NodeView } from "../../gen/gangway/v1/cluster_service_pb.ts";
import { JobPhase } from "../../gen/gangway/v1/job_pb.ts";
import { JobService } from "../../gen/gangway/v1/job_service_pb.ts";
import { NamespaceService } from "../../gen/gangway/v1/namespace_service_pb.ts";
import { PriorityClassService } from "../../gen/gangway/v1/priority_class_service_pb.ts";
import { QueueService } from "../../gen/gangway/v1/queue_service_pb.ts";
import { ResourceManager } from "../../gen/gangway/v1/resource_manager_pb.ts";
import { RuntimeService } from "../../gen/gangway/v1/runtime_service_pb.ts";
import { readContexts } from "../auth/contexts.ts";
import { connect, type GangwayClient } from "../rpc/client.ts";
import type { CliDeps } from "../shell/deps.ts";
import { OUTPUT_WORDS } from "../shell/options.ts";
import { calledService, type GlobalOptions } from "./run-command.ts";

export type ValueLine = { readonly deps: CliDeps; readonly program: Command; readonly options: GlobalOptions };

/** Returns words, of which some may begin with what was typed. */
type Values = (line: ValueLine) => Promise<readonly string[]>;

/** A shell shows no more. */
const NAMES_MAX = 200;

/** The values of an option; empty if there is nothing to propose. */
export async function valuesOfOption(option: Option, line: ValueLine): Promise<readonly string[]> {
  return (await OPTIONS[option.long ?? ""]?.(line)) ?? [];
}

/** The values of an argument, by its description. */
export async function valuesOfArgument(description: string, line: ValueLine): Promise<readonly string[]> {
  return (await ARGUMENTS.find(({ of }) => of.test(description))?.values(line)) ?? [];
}

/** True for an option whose value may be a list with commas. */
export function isListOption({ flags }: Option): boolean {
  return flags.includes(",...>");
}

function named(
  list: (client: GangwayClient, namespace: string) => Promise<readonly { readonly name: string }[]>,
): Values {
  return async ({ deps, options }) => {
    const { addresses, namespace, security } = await calledService(options, deps);
    const client = connect(addresses.join(","), deps.signal, security);
    try {
      return (await list(client, namespace)).map(({ name }) => name);
    } finally {
      client.close();
    }
  };
}

const jobs = named(async (client, namespace) => {
  const request = { filter: { namespace }, pageSize: NAMES_MAX, orderBy: "create_time desc" };
  const found = await client.call(JobService.method.listJobs, request);
  return found.jobs.flatMap(({ metadata }) => metadata ?? []);
});
const queues = named(async (client) => (await client.call(QueueService.method.listQueues, {})).queues);
const clusters = named(async (client) => (await client.call(ClusterService.method.listClusters, {})).clusters);
const nodes = named(async (client) => {
  const request = { pageSize: NAMES_MAX, view: NodeView.BASIC };
  return (await client.call(ClusterService.method.getCapacity, request)).nodes;
});
const namespaces = named(async (client) => (await client.call(NamespaceService.method.listNamespaces, {})).namespaces);
const pools = named(
  async (client) => (await client.call(ResourceManager.method.listPools, { pageSize: NAMES_MAX })).pools,
);
const priorityClasses = named(
  async (client) => (await client.call(PriorityClassService.method.listPriorityClasses, {})).priorityClasses,
);
const runtimes = named(async (client, namespace) => {
  const request = { namespace, pageSize: NAMES_MAX };
  return (await client.call(RuntimeService.method.listRuntimes, request)).runtimes;
});
const contexts: Values = async ({ deps }) => [...(await readContexts(deps.configFile)).contexts.keys()];
const phases: Values = async () =>
  Object.keys(JobPhase)
    .filter((name) => name !== "UNSPECIFIED")
    .map((name) => name.toLowerCase());
const kinds: Values = async ({ deps }) => (await deps.kinds()).all.map(({ name }) => name);

const OPTIONS: Readonly<Record<string, Values>> = {
  "--cluster": clusters,
  "--context": contexts,
  "--default-queue": queues,
  "--kind": kinds,
  "--namespace": namespaces,
  "--output": async () => OUTPUT_WORDS,
  "--parent": queues,
  "--phase": phases,
  "--pool": pools,
  "--priority-class": priorityClasses,
  "--queue": queues,
};

const ARGUMENTS: readonly { readonly of: RegExp; readonly values: Values }[] = [
  { of: /^names? of (the )?jobs?/, values: jobs },
  { of: /^name of the queue/, values: queues },
  { of: /^name of the cluster/, values: clusters },
  { of: /^names? of nodes/, values: nodes },
  { of: /^name of the namespace/, values: namespaces },
  { of: /^name of the pool/, values: pools },
  { of: /^name of the priority class/, values: priorityClasses },
  { of: /^name of the runtime/, values: runtimes },
  { of: /^name of the context/, values: contexts },
];
