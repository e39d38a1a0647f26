import {
  ClusterService,
  type CredentialKey,
  ListCredentialKeysResponseSchema,
} from "../../gen/gangway/v1/cluster_service_pb.ts";
import { printLines, printResponse } from "../output/print.ts";
import type { Column } from "../output/table.ts";
import { examples, onRun, type Registrar } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { type OutputFormat, outputOption } from "../shell/options.ts";

/** `gangway keys` and its commands. */
export function registerKeys(registrar: Registrar): void {
  const program = registrar.program
    .command("keys")
    .description("List and rotate the keys that encrypt the kubeconfigs of clusters")
    .addHelpText("after", examples("gangway keys list", "gangway keys rotate"));
  const group = { ...registrar, program };
  registerList(group);
  registerRotate(group);
}

const COLUMNS: readonly Column[] = [{ title: "NAME" }, { title: "STATE" }, { title: "CLUSTERS", align: "right" }];

function registerList(registrar: Registrar): void {
  const command = registrar.program
    .command("list")
    .alias("ls")
    .description("List the names of the keys, and how many clusters need each")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway keys list"));
  onRun<{ output: OutputFormat }>(registrar, command, async (run, _args, { output }) => {
    const message = await run.client.call(ClusterService.method.listCredentialKeys, {});
    printResponse(run, output, {
      schema: ListCredentialKeysResponseSchema,
      message,
      names: message.keys.map(({ name }) => `key/${name}`),
      columns: COLUMNS,
      rows: message.keys.map((key) => [key.name, stateOf(key), String(key.clusters.length)]),
      none: "no keys",
    });
    for (const { name, clusters } of message.keys.filter(({ known }) => !known)) {
      run.deps.stderr(`key/${name} is missing: the service cannot use the kubeconfigs of ${clusters.join(", ")}\n`);
    }
    return EXIT.ok;
  });
}

function stateOf({ current, known }: CredentialKey): string {
  if (current) return "current";
  return known ? "known" : "missing";
}

function registerRotate(registrar: Registrar): void {
  const command = registrar.program
    .command("rotate")
    .summary("Encrypt all kubeconfigs again with the current key")
    .description(
      "Encrypt all kubeconfigs again with the current key. Clusters stay in use meanwhile, and the command can be " +
        "repeated.\nExit status: 0 if the current key encrypts all of them, 3 if some do not decrypt.",
    )
    .option("--to <key>", "refuse unless this is the current key of the process that answers")
    .addHelpText("after", examples("gangway keys rotate", "gangway keys rotate --to 2026-11"));
  onRun<{ to?: string }>(registrar, command, async (run, _args, { to = "" }) => {
    const { changed, keys, problems } = await run.client.call(ClusterService.method.rotateCredentialKeys, { to });
    const current = keys.find((key) => key.current)?.name ?? to;
    printLines(run, [`${changed} ${changed === 1 ? "kubeconfig" : "kubeconfigs"} encrypted again with key/${current}`]);
    for (const { cluster, message } of problems) run.deps.stderr(`error: cluster/${cluster}: ${message}\n`);
    return problems.length === 0 ? EXIT.ok : EXIT.refused;
  });
}
