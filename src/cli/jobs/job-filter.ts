import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Command } from "commander";
import type { JobFilterSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import { usageFailure } from "../exit.ts";
import { commaList } from "../options.ts";
import { parsePhase } from "../output/job-text.ts";
import type { Run } from "../run-command.ts";

/** The API accepts this many names in a filter. For more jobs, a stream covers their whole namespace. */
export const FILTER_NAMES_MAX = 1000;

/** The options that select jobs. */
export type JobFilterOptions = {
  readonly allNamespaces?: boolean;
  readonly queue?: string;
  readonly cluster?: string;
  readonly phase?: readonly string[];
  readonly kind?: readonly string[];
  readonly selector?: readonly string[];
};

export function addJobFilterOptions(command: Command): Command {
  return command
    .option("-A, --all-namespaces", "include jobs of all namespaces")
    .option("--queue <name>", "only jobs of this queue")
    .option("--cluster <name>", "only jobs on this cluster")
    .option("--phase <phase,...>", "only jobs in one of these phases, e.g. waiting,running", commaList)
    .option("--kind <kind,...>", "only jobs of one of these kinds, e.g. PyTorchJob", commaList)
    .option("-l, --selector <key=value,...>", "only jobs with all of these labels", commaList);
}

/** True if an option selects jobs by a property. */
export function hasFilter({ queue, cluster, phase, kind, selector }: JobFilterOptions): boolean {
  return [queue, cluster, phase, kind, selector].some((option) => option !== undefined);
}

/** Makes the API's filter for jobs of the run's namespace or of all. Without `names` it selects jobs of any name. */
export async function jobFilterOf(
  { deps, namespace }: Run,
  options: JobFilterOptions,
  names: readonly string[],
): Promise<MessageInitShape<typeof JobFilterSchema>> {
  const given = options.kind ?? [];
  const kinds = given.length === 0 ? [] : (await deps.kinds()).all.map(({ name }) => name);
  return {
    namespace: options.allNamespaces === true ? "" : namespace,
    names: [...names],
    queue: options.queue ?? "",
    cluster: options.cluster ?? "",
    phases: (options.phase ?? []).map(parsePhase),
    kinds: given.map((kind) => spelledKind(kind, kinds)),
    labels: labelsOf(options.selector ?? []),
  };
}

/** Corrects the case of a kind: `pytorchjob` is `PyTorchJob`. */
function spelledKind(given: string, kinds: readonly string[]): string {
  return kinds.find((name) => name.toLowerCase() === given.toLowerCase()) ?? given;
}

function labelsOf(selectors: readonly string[]): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const selector of selectors) {
    const [, key = "", value = ""] = /^([^=!\s]+)==?([^=\s]*)$/.exec(selector) ?? [];
    if (key === "") throw usageFailure(`--selector must be KEY=VALUE, not ${selector}`);
    const other = labels[key];
    if (other !== undefined && other !== value) {
      throw usageFailure(`--selector gives ${key} two values, ${other} and ${value}: no job has both`);
    }
    labels[key] = value;
  }
  return labels;
}
