import { Option } from "commander";
import { type GetCapacityResponse, NodeSchema, NodeView } from "../../gen/gangway/v1/cluster_service_pb.ts";
import { describeNode } from "../nodes/describe-node.ts";
import { listNodes, namedNodes, nodeNames, noteGaps } from "../nodes/list-nodes.ts";
import { addNodeOptions, type NodeListOptions } from "../nodes/node-options.ts";
import { printNodes } from "../nodes/node-table.ts";
import { printEncoded, printPainted } from "../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { isTable } from "../shell/options.ts";

type NodesOptions = NodeListOptions & { readonly rows?: boolean };

export function registerNodes(registrar: Registrar): void {
  const command = addNodeOptions(registrar.program.command("nodes"), "cluster")
    .alias("node")
    .summary("Show the nodes of clusters, and the jobs that hold them")
    .description(
      "Show the nodes of all clusters: how many GPUs are held and free, whether a node takes pods or why not, and " +
        "the jobs that hold it. With names, show these nodes in full. " +
        "What is held is what pods request, not what they use.",
    )
    .argument("[name...]", "names of nodes, as NAME or node/NAME")
    .addOption(new Option("--rows", "show named nodes as rows of the table, as `gangway get nodes` does"))
    .addHelpText(
      "after",
      examples(
        "gangway nodes",
        "gangway nodes --cluster h100-east --sort-by free",
        "gangway nodes --state not-ready,cordoned",
        "gangway nodes h100-east-0",
        "gangway nodes -o custom-columns=NODE:.name,FREE:.gpus[0].free",
      ),
    );
  onRun<NodesOptions>(registrar, command, async (run, args, options) => {
    const names = nodeNames(args);
    return names.length === 0 ? showAll(run, options) : showNamed(run, names, options);
  });
}

async function showAll(run: Run, options: NodesOptions): Promise<number> {
  const { sortBy = "cluster", limit, output } = options;
  const view = output === "table" || output === "name" ? NodeView.BASIC : NodeView.FULL;
  const found = await listNodes(run, options, { names: [], orderBy: sortBy, limit, view });
  printNodes(run, found.answer, options);
  noteGaps(run, found, limit);
  return EXIT.ok;
}

async function showNamed(run: Run, names: readonly string[], options: NodesOptions): Promise<number> {
  const { sortBy = "name", limit, output, rows = false } = options;
  const found = await namedNodes(run, options, { names, orderBy: sortBy, limit, view: NodeView.FULL });
  const { answer } = found;
  const [only] = answer.nodes;
  if (output === "table" && !rows) describeAll(run, answer);
  else if (only !== undefined && answer.nodes.length === 1 && !isTable(output) && output !== "name") {
    printEncoded(run, output, { schema: NodeSchema, message: only });
  } else printNodes(run, answer, options);
  noteGaps(run, found, limit);
  return EXIT.ok;
}

function describeAll(run: Run, answer: GetCapacityResponse): void {
  for (const [at, node] of answer.nodes.entries()) {
    if (at > 0) printPainted(run, ["", ""]);
    describeNode(run, node, answer);
  }
}
