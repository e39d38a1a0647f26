import { ReleaseResourceResponseSchema, ResourceManager } from "../../gen/gangway/v1/resource_manager_pb.ts";
import { printChange } from "../output/print.ts";
import { releaseWord } from "../output/quota-text.ts";
import { examples, onRun, type Registrar } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { type OutputFormat, outputOption } from "../shell/options.ts";

export function registerRelease(registrar: Registrar): void {
  const command = registrar.program
    .command("release")
    .summary("Release a token that you hold")
    .description(
      "Release a token that you hold. Releasing a token that is not held succeeds too.\n" +
        "With --namespace, or in a context with one, refuse if the token is held under another namespace.",
    )
    .argument("<pool>", "name of the pool, e.g. gpu/h100")
    .argument("<token>", "name of the token")
    .option("--holder <name>", "name of the token's holder (default: the caller's identity)")
    .option("--project <name>", "refuse if the token is held under another project")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway release ex:warehouse query-17"));
  type ReleaseOptions = { holder?: string; project?: string; output: OutputFormat };
  onRun<ReleaseOptions>(registrar, command, async (run, [pool = "", token = ""], options) => {
    const { holder = "", project = "", output } = options;
    const namespace = run.chosenNamespace ?? "";
    const request = { resourceNamespace: pool, allocationToken: token, holder, project, namespace };
    const message = await run.client.call(ResourceManager.method.releaseResource, request);
    const line = `${pool} ${token} ${releaseWord(message.outcome)}`;
    const names = [`allocation/${token}`];
    printChange(run, output, { line, names, schema: ReleaseResourceResponseSchema, message });
    return EXIT.ok;
  });
}
