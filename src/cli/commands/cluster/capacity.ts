import { ClusterService, GetCapacityResponseSchema, type Node } from "../../../gen/gangway/v1/cluster_service_pb.ts";
import { printResponse } from "../../output/print.ts";
import { examples, onRun, type Registrar } from "../../run/run-command.ts";
import { EXIT } from "../../shell/exit.ts";
import { type OutputFormat, outputOption } from "../../shell/options.ts";

export function registerClusterCapacity(registrar: Registrar): void {
  const command = registrar.program
    .command("capacity")
    .description("Show the free and the total resources of each node of a cluster")
    .argument("<name>", "name of the cluster")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway cluster capacity h100-east"));
  onRun<{ output: OutputFormat }>(registrar, command, async (run, [name = ""], { output }) => {
    const message = await run.client.call(ClusterService.method.getCapacity, { name });
    const { nodes } = message;
    const resources = [...new Set(nodes.flatMap((node) => Object.keys(node.allocatable)))].sort();
    printResponse(run, output, {
      schema: GetCapacityResponseSchema,
      message,
      names: nodes.map((node) => `node/${node.name}`),
      columns: [
        { title: "NODE" },
        ...resources.map((resource) => ({ title: `${resource} FREE/TOTAL`, align: "right" }) as const),
        { title: "STATE" },
      ],
      rows: nodes.map((node) => [
        node.name,
        ...resources.map((resource) => freeCell(node, resource)),
        [node.unschedulable ? "unschedulable" : "", ...node.taints].filter((text) => text !== "").join(", "),
      ]),
      none: "no nodes",
    });
    return EXIT.ok;
  });
}

/** `3/8`: the free and the total amount of a resource; empty if there is none. */
export function freeCell(capacity: { free: Node["free"]; allocatable: Node["allocatable"] }, resource: string): string {
  const total = capacity.allocatable[resource];
  return total === undefined ? "" : `${capacity.free[resource] ?? "0"}/${total}`;
}
