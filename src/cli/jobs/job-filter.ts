import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Command } from "commander";
import type { Registry } from "../../core/kinds/registry.ts";
import type { JobFilterSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import { usageFailure } from "../exit.ts";
import { namespaceOption, repeated } from "../options.ts";
import { parsePhase } from "../output/job-text.ts";

/** The options by which `gangway list` and `gangway watch` select jobs. */
export type JobFilterOptions = {
  readonly namespace: string;
  readonly allNamespaces?: boolean;
  readonly queue?: string;
  readonly cluster?: string;
  readonly phase?: readonly string[];
  readonly kind?: readonly string[];
  readonly label?: readonly string[];
};

export function addJobFilterOptions(command: Command): Command {
  return command
    .addOption(namespaceOption())
    .option("-A, --all-namespaces", "include jobs of all namespaces")
    .option("--queue <name>", "only jobs of this queue")
    .option("--cluster <name>", "only jobs on this cluster")
    .option("--phase <phase>", "only jobs in this phase, e.g. waiting; may be repeated", repeated)
    .option("--kind <kind>", "only jobs of this kind, e.g. PyTorchJob; may be repeated", repeated)
    .option("-l, --label <key=value>", "only jobs with this label; may be repeated", repeated);
}

/** Makes the API's filter. Without `names` it selects jobs of any name. */
export function jobFilterOf(
  options: JobFilterOptions,
  { names, kinds }: { readonly names: readonly string[]; readonly kinds: Registry },
): MessageInitShape<typeof JobFilterSchema> {
  return {
    namespace: options.allNamespaces === true ? "" : options.namespace,
    names: [...names],
    queue: options.queue ?? "",
    cluster: options.cluster ?? "",
    phases: (options.phase ?? []).map(parsePhase),
    kinds: (options.kind ?? []).map((given) => spelledKind(given, kinds)),
    labels: Object.fromEntries((options.label ?? []).flatMap((labels) => labels.split(",")).map(parseLabel)),
  };
}

/** Corrects the case of a kind: `pytorchjob` is `PyTorchJob`. */
function spelledKind(given: string, kinds: Registry): string {
  return kinds.all.find(({ name }) => name.toLowerCase() === given.toLowerCase())?.name ?? given;
}

function parseLabel(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  if (at < 1) throw usageFailure(`--label must be KEY=VALUE, not ${text}`);
  return [text.slice(0, at), text.slice(at + 1)];
}
