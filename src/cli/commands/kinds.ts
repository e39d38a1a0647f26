import { create } from "@bufbuild/protobuf";
import { stringify } from "yaml";
import { JobService, type Kind, ListKindsResponseSchema, type Role } from "../../gen/gangway/v1/job_service_pb.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { show } from "../output.ts";
import { examples, type OutputFormat, onRun, outputOption, type Registrar } from "../shell.ts";

export function registerKinds(registrar: Registrar): void {
  const command = registrar.program
    .command("kinds")
    .description("show the kinds of jobs that are served")
    .option("--example <kind>", "print a manifest of this kind that runs")
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples("gangway kinds", "gangway kinds -o yaml", "gangway kinds --example PyTorchJob | gangway submit -f -"),
    );
  onRun<{ output: OutputFormat; example?: string }>(registrar, command, async (run, _args, { output, example }) => {
    const { kinds } = await run.client.call(JobService.method.listKinds, {});
    if (example !== undefined) {
      run.deps.stdout(exampleText(kinds, example));
      return EXIT.ok;
    }
    show(run, output, {
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

/** What a job of the kind is, and what it may be called where the kind serves others' names too. */
function runsCell({ withoutPods, isDefault }: Kind): string {
  return `${withoutPods ? "at a service" : "pods"}${isDefault ? "; any unknown kind" : ""}`;
}

function exampleText(kinds: readonly Kind[], name: string): string {
  const kind = kinds.find((one) => one.name.toLowerCase() === name.toLowerCase());
  if (kind === undefined)
    throw usageFailure(`there is no kind ${name}; there are ${kinds.map((one) => one.name).join(", ")}`);
  return stringify(kind.example ?? {});
}

function roleText(role: Role): string {
  if (role.name === "") return "any";
  const { name, minReplicas: least, maxReplicas: most } = role;
  if (most === undefined) return least > 0 ? `${name} (at least ${least})` : name;
  return `${name} (${least === most ? "exactly" : "at most"} ${most})`;
}
