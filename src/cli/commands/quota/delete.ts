import { DeletePoolResponseSchema, ResourceManager } from "../../../gen/gangway/v1/resource_manager_pb.ts";
import { printChange } from "../../output/print.ts";
import { examples, onRun, type Registrar } from "../../run/run-command.ts";
import { EXIT } from "../../shell/exit.ts";
import { type OutputFormat, outputOption } from "../../shell/options.ts";

export function registerDeletePool(registrar: Registrar): void {
  const command = registrar.program
    .command("delete")
    .description("Delete a pool that no token, waiting request, queue or cluster uses")
    .argument("<pool>", "name of the pool")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway quota delete ex:warehouse"));
  onRun<{ output: OutputFormat }>(registrar, command, async (run, [name = ""], { output }) => {
    const message = await run.client.call(ResourceManager.method.deletePool, { name });
    const names = [`pool/${name}`];
    printChange(run, output, { line: `pool/${name} deleted`, names, schema: DeletePoolResponseSchema, message });
    return EXIT.ok;
  });
}
