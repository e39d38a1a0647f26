import { NodeView } from "../../../gen/gangway/v1/cluster_service_pb.ts";
import { listNodes, noteGaps } from "../../nodes/list-nodes.ts";
import { addNodeOptions, type NodeListOptions } from "../../nodes/node-options.ts";
import { printNodes } from "../../nodes/node-table.ts";
import { examples, onRun, type Registrar } from "../../run/run-command.ts";
import { EXIT } from "../../shell/exit.ts";
import { noteReserved } from "./reserved.ts";

export function registerTopNodes(registrar: Registrar): void {
  const command = addNodeOptions(registrar.program.command("nodes"), "held")
    .alias("node")
    .alias("no")
    .summary("Show nodes by the GPUs that are held and free")
    .description(
      "Show nodes by the GPUs that are held and free, the fullest first. What is held is what pods request, not what " +
        "they use.",
    )
    .addHelpText("after", examples("gangway top nodes", "gangway top nodes --sort-by free --flavor gpu/h100"));
  onRun<NodeListOptions>(registrar, command, async (run, _args, options) => {
    const { sortBy = "held desc", limit, output } = options;
    const view = output === "table" || output === "name" ? NodeView.BASIC : NodeView.FULL;
    const found = await listNodes(run, options, { names: [], orderBy: sortBy, limit, view });
    printNodes(run, found.answer, { output, isTop: true });
    noteGaps(run, found, limit);
    noteReserved(run, output, found.answer.nodes.length);
    return EXIT.ok;
  });
}
