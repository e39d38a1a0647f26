import { ForceReleaseResponseSchema, ResourceManager } from "../../../gen/gangway/v1/resource_manager_pb.ts";
import { printChange } from "../../output/print.ts";
import { releaseWord } from "../../output/quota-text.ts";
import { examples, onRun, type Registrar } from "../../run/run-command.ts";
import { EXIT, usageFailure } from "../../shell/exit.ts";
import { type OutputFormat, outputOption } from "../../shell/options.ts";

export function registerForceRelease(registrar: Registrar): void {
  const command = registrar.program
    .command("release")
    .summary("Take a token from its holder")
    .description(
      "Take a token from its holder, who may still be using it. A running job's tokens cannot be taken.\n" +
        'To release a token that you hold yourself, use "gangway release".',
    )
    .argument("<pool>", "name of the pool")
    .argument("<token>", "name of the token")
    .option("--force", "required: confirms that the holder may lose the token while using it")
    .option("--reason <text>", "required: reason for the audit log")
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples('gangway quota release ex:warehouse query-17 --force --reason "its host is gone, see INC-4711"'),
    );
  type ForceReleaseOptions = { force?: boolean; reason?: string; output: OutputFormat };
  onRun<ForceReleaseOptions>(registrar, command, async (run, [pool = "", token = ""], options) => {
    const { force, reason, output } = options;
    if (force !== true || reason === undefined) {
      throw usageFailure('give --force and --reason; to release a token that you hold, use "gangway release"');
    }
    const request = { resourceNamespace: pool, allocationToken: token, reason };
    const message = await run.client.call(ResourceManager.method.forceRelease, request);
    const line = `${pool} ${token} ${releaseWord(message.outcome)}`;
    printChange(run, output, { line, names: [`allocation/${token}`], schema: ForceReleaseResponseSchema, message });
    return EXIT.ok;
  });
}
