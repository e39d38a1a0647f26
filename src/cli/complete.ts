/** Completes command lines for shells: `gangway __complete WORDS… LAST` prints what the last word can be. */
import type { Command, Option } from "commander";
import { ClusterService } from "../gen/gangway/v1/cluster_service_pb.ts";
import { JobService } from "../gen/gangway/v1/job_service_pb.ts";
import { QueueService } from "../gen/gangway/v1/queue_service_pb.ts";
import type { CliDeps } from "./deps.ts";
import { connect, type GangwayClient } from "./rpc/client.ts";
import { calledService, type GlobalOptions } from "./run-command.ts";

/** A shell shows no more. */
const NAMES_MAX = 200;

/** Returns the words that begin with the last one. Names come from the service; without an answer there are none. */
export async function completions(
  program: Command,
  words: readonly string[],
  deps: CliDeps,
): Promise<readonly string[]> {
  const last = words.at(-1) ?? "";
  const { command, options, awaited } = place(program, words.slice(0, -1));
  const all = awaited === null ? await wordsFor(command, { last, options, program }, deps) : (awaited.argChoices ?? []);
  return [...new Set(all)].filter((word) => word.startsWith(last)).sort();
}

/** The command that words lead to, their global options, and the option that waits for its value. */
function place(program: Command, words: readonly string[]) {
  let command = program;
  let awaited: Option | null = null;
  const options: Record<string, string> = {};
  for (const word of words) {
    if (awaited !== null) {
      options[awaited.attributeName()] = word;
      awaited = null;
    } else if (word.startsWith("-")) awaited = awaitedBy(word, [command, program]);
    else command = command.commands.find((one) => [one.name(), ...one.aliases()].includes(word)) ?? command;
  }
  return { command, options: options as GlobalOptions, awaited };
}

function awaitedBy(word: string, commands: readonly Command[]): Option | null {
  const option = commands.flatMap(({ options }) => options).find(({ long, short }) => word === long || word === short);
  return option?.required === true ? option : null;
}

type Line = { readonly last: string; readonly options: GlobalOptions; readonly program: Command };

async function wordsFor(command: Command, line: Line, deps: CliDeps): Promise<readonly string[]> {
  if (line.last.startsWith("-")) {
    return [command, line.program].flatMap(({ options }) => options.flatMap(({ long }) => long ?? []));
  }
  if (command.commands.length > 0) return command.commands.flatMap((one) => [one.name(), ...one.aliases()]);
  const [argument] = command.registeredArguments;
  const namer = NAMERS.find(({ of }) => of.test(argument?.description ?? ""));
  if (namer === undefined) return [];
  const { addresses, namespace } = await calledService(line.options, deps);
  const client = connect(addresses.join(","), deps.signal);
  try {
    return await namer.names(client, namespace);
  } finally {
    client.close();
  }
}

type Namer = {
  /** Matches the description of a command's first argument. */
  readonly of: RegExp;
  readonly names: (client: GangwayClient, namespace: string) => Promise<readonly string[]>;
};

const NAMERS: readonly Namer[] = [
  {
    of: /^names? of (the )?jobs?/,
    names: async (client, namespace) => {
      const request = { filter: { namespace }, pageSize: NAMES_MAX, orderBy: "create_time desc" };
      const { jobs } = await client.call(JobService.method.listJobs, request);
      return jobs.map(({ metadata }) => metadata?.name ?? "");
    },
  },
  {
    of: /^name of the queue/,
    names: async (client) => (await client.call(QueueService.method.listQueues, {})).queues.map(({ name }) => name),
  },
  {
    of: /^name of the cluster/,
    names: async (client) =>
      (await client.call(ClusterService.method.listClusters, {})).clusters.map(({ name }) => name),
  },
];
