import { yaml } from "../../runtime/lazy-yaml.ts";
import { printLines } from "../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { isTable, type OutputFormat, outputOption } from "../shell/options.ts";

export function registerVersion(registrar: Registrar): void {
  const command = registrar.program
    .command("version")
    .description("Print the versions of this program and of the service")
    .option("--client", "only the version of this program; calls no service")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway version", "gangway version --client", "gangway version -o json"));
  type VersionOptions = { client?: boolean; output: OutputFormat };
  onRun<VersionOptions>(registrar, command, async (run, _args, { client = false, output }) => {
    const { version } = run.deps;
    if (!isTable(output)) {
      const versions = client ? { client: version } : { client: version, server: await serverVersion(run) };
      run.deps.stdout(encoded(versions, output));
      return EXIT.ok;
    }
    printLines(run, [`client ${version}`]);
    if (!client) printLines(run, [`server ${await serverVersion(run)} at ${run.client.address}`]);
    return EXIT.ok;
  });
}

/** A service of an earlier version does not tell its own. */
async function serverVersion(run: Run): Promise<string> {
  return (await run.client.serverVersion()) ?? "unknown";
}

function encoded(versions: Readonly<Record<string, string>>, output: Exclude<OutputFormat, "table" | "wide">): string {
  if (typeof output === "object") return output.render(versions, null);
  return output === "yaml" ? yaml().stringify(versions) : `${JSON.stringify(versions, null, 2)}\n`;
}
