/** The options that select and order nodes. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { NodeState } from "../../gen/gangway/v1/cluster_service_pb.ts";
import { selectorParts } from "../jobs/label-selector.ts";
import { commaList, limitOption, noHeadersOption, type OutputFormat, outputOption } from "../shell/options.ts";

export type NodeSelection = {
  readonly cluster?: string;
  readonly flavor?: readonly string[];
  readonly state?: readonly string[];
  readonly selector?: readonly string[];
};

/** With those of every list of nodes. */
export type NodeListOptions = NodeSelection & {
  readonly sortBy?: string;
  readonly limit: number;
  readonly output: OutputFormat;
};

/** The words for states. */
export const STATE_WORDS: Readonly<Record<string, NodeState>> = {
  ready: NodeState.READY,
  "not-ready": NodeState.NOT_READY,
  cordoned: NodeState.CORDONED,
  leaving: NodeState.LEAVING,
};

export function stateNumber(word: string): NodeState {
  return STATE_WORDS[word] ?? NodeState.UNSPECIFIED;
}

function parseStates(text: string, before: readonly string[] | undefined): readonly string[] {
  const words = commaList(text.toLowerCase(), before).map((word) => (word === "notready" ? "not-ready" : word));
  const wrong = words.find((word) => !Object.hasOwn(STATE_WORDS, word));
  if (wrong === undefined) return words;
  throw new InvalidArgumentError(`There is no state ${wrong}. Allowed are ${Object.keys(STATE_WORDS).join(", ")}.`);
}

/** `order`: how the nodes are ordered without --sort-by. */
export function addNodeOptions(command: Command, order: string): Command {
  return command
    .option("--cluster <name>", "only nodes of this cluster")
    .option("--flavor <name,...>", "only nodes of one of these flavors, e.g. gpu/h100", commaList)
    .addOption(
      new Option("--state <state,...>", "only nodes in one of these states")
        .choices(Object.keys(STATE_WORDS))
        .argParser(parseStates),
    )
    .option("-l, --selector <selector>", "only nodes with such labels, as in kubectl", selectorParts)
    .addOption(
      new Option("--sort-by <path>", `name, cluster, held or free (default: ${order}); GPUs descend`).argParser(
        parseSortBy,
      ),
    )
    .addOption(limitOption())
    .addOption(noHeadersOption())
    .addOption(outputOption());
}

/** Words for the orders of the service, also as paths of kubectl. */
const SORTS: Readonly<Record<string, string>> = {
  name: "name",
  "metadata.name": "name",
  cluster: "cluster",
  held: "held desc",
  gpus: "held desc",
  free: "free desc",
};

function parseSortBy(text: string): string {
  const word = text.replace(/^\{?\.?/, "").replace(/\}$/, "");
  const order = Object.hasOwn(SORTS, word) ? SORTS[word] : undefined;
  if (order !== undefined) return order;
  throw new InvalidArgumentError(`Allowed are ${Object.keys(SORTS).join(", ")}.`);
}
