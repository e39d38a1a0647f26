import { create } from "@bufbuild/protobuf";
import { stringify } from "yaml";
import { JobService, type Kind, ListKindsResponseSchema, type Role } from "../../gen/gangway/v1/job_service_pb.ts";
import { printResponse } from "../output/print.ts";
import { examples, onRun, type Registrar } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";
import { type OutputFormat, outputOption } from "../shell/options.ts";

export function registerKinds(registrar: Registrar): void {
  const command = registrar.program
    .command("kinds")
    .description("List the kinds of jobs that the service runs")
    .option("--example <kind>", "print an example manifest of this kind, ready to submit")
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples("gangway kinds", "gangway kinds -o yaml", "gangway kinds --example PyTorchJob | gangway submit -f -"),
    );
  type KindsOptions = { output: OutputFormat; example?: string };
  onRun<KindsOptions>(registrar, command, async (run, _args, { output, example }) => {
    const { kinds } = await run.client.call(JobService.method.listKinds, {});
    if (example !== undefined) {
      run.deps.stdout(exampleText(kinds, example));
      return EXIT.ok;
    }
    printResponse(run, output, {
      schema: ListKindsResponseSchema,
      message: create(ListKindsResponseSchema, { kinds }),
      names: kinds.map((kind) => kind.name),
      columns: ["KIND", "API VERSION", "REPLICA TYPES", "CONTAINER", "PORT", "RUNS"].map((title) => ({ title })),
      rows: kinds.map((kind) => [
        kind.name,
        kind.apiVersion,
        kind.roles.map(roleText).join(", "),
        kind.withoutPods ? "" : kind.defaultContainer || "the first",
        kind.port === 0 ? "" : `${kind.port}`,
        runsCell(kind),
      ]),
      none: "no kinds",
    });
    return EXIT.ok;
  });
}

/** Whether jobs of the kind run as pods, and whether the kind also takes manifests of unknown kinds. */
function runsCell({ withoutPods, isDefault }: Kind): string {
  return `${withoutPods ? "at a service" : "pods"}${isDefault ? "; any unknown kind" : ""}`;
}

function exampleText(kinds: readonly Kind[], name: string): string {
  const kind = kinds.find((one) => one.name.toLowerCase() === name.toLowerCase());
  if (kind === undefined)
    throw usageFailure(`there is no kind ${name}; use one of ${kinds.map((one) => one.name).join(", ")}`);
  return stringify(kind.example ?? {});
}

function roleText(role: Role): string {
  if (role.name === "") return "any";
  const { name, minReplicas, maxReplicas } = role;
  if (maxReplicas === undefined) return minReplicas > 0 ? `${name} (at least ${minReplicas})` : name;
  return `${name} (${minReplicas === maxReplicas ? "exactly" : "at most"} ${maxReplicas})`;
}
