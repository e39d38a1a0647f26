import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Command } from "commander";
import type { TextFilter } from "../../core/job/request/filter-text.ts";
import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import type { JobFilterSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import { parsePhase } from "../output/job-text.ts";
import type { Run } from "../run/run-command.ts";
import { usageFailure } from "../shell/exit.ts";
import { commaList } from "../shell/options.ts";
import { type FilterTextOptions, fieldsOf, textFilterOf } from "./filter-text.ts";
import { isAnyKind, kindOfOption } from "./kind-words.ts";
import { labelSelectorOf, passes, selectorParts } from "./label-selector.ts";
import { ownName } from "./own-name.ts";

/** The API accepts this many names in a filter. For more jobs, a stream covers their whole namespace. */
export const FILTER_NAMES_MAX = 1000;

/** The options that select jobs. */
export type JobFilterOptions = FilterTextOptions & {
  readonly allNamespaces?: boolean;
  readonly queue?: string;
  readonly cluster?: string;
  readonly phase?: readonly string[];
  readonly kind?: readonly string[];
  readonly selector?: readonly string[];
  readonly mine?: boolean;
};

export function addJobFilterOptions(command: Command): Command {
  return command
    .option("-A, --all-namespaces", "include jobs of all namespaces")
    .option("--queue <name>", "only jobs of this queue")
    .option("--cluster <name>", "only jobs on this cluster")
    .option("--phase <phase,...>", "only jobs in one of these phases, e.g. waiting,running", commaList)
    .option("--kind <kind,...>", "only jobs of one of these kinds, e.g. PyTorchJob", commaList)
    .option(
      "-l, --selector <selector>",
      "only jobs with such labels: KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY or !KEY, with commas",
      selectorParts,
    )
    .option("--mine", "only jobs that you have submitted");
}

/** True if an option selects jobs by a property. */
export function hasFilter(options: JobFilterOptions): boolean {
  const { queue, cluster, phase, kind, selector, mine, filter, since } = options;
  return [queue, cluster, phase, kind, selector, mine, filter, since].some((option) => option !== undefined);
}

/** The options with the kind of an argument that is a kind alone. Null, or a word for any kind, changes nothing. */
export function withKind<O extends JobFilterOptions>(options: O, kindWord: string | null): O {
  if (kindWord === null || isAnyKind(kindWord)) return options;
  if (options.kind !== undefined) throw usageFailure(`give either the kind ${kindWord} or --kind, not both`);
  return { ...options, kind: [kindWord] };
}

/** Makes the API's filter for jobs of the run's namespace or of all. Without `names` it selects jobs of any name. */
export async function jobFilterOf(
  run: Run,
  options: JobFilterOptions,
  names: readonly string[],
): Promise<MessageInitShape<typeof JobFilterSchema>> {
  const kinds: string[] = [];
  for (const word of options.kind ?? []) kinds.push(await kindOfOption(run, word));
  const text = textFilterOf(run, options);
  refuseTwice(options, text);
  const { labels } = labelSelectorOf(options.selector ?? []);
  return {
    namespace: options.allNamespaces === true || text.namespaces !== undefined ? "" : run.namespace,
    names: [...names],
    queue: options.queue ?? "",
    cluster: options.cluster ?? "",
    phases: (options.phase ?? []).map(parsePhase),
    kinds,
    ...(await fieldsOf(run, text)),
    labels: { ...labels, ...text.labels },
  };
}

/** Refuses a property that an option and the text of `--filter` select by: only one of them could count. */
function refuseTwice(options: JobFilterOptions, text: TextFilter): void {
  const twice = (["phase", "kind", "cluster"] as const).find((option) => {
    const member = ({ phase: "phases", kind: "kinds", cluster: "cluster" } as const)[option];
    return options[option] !== undefined && text[member] !== undefined;
  });
  if (twice !== undefined) throw usageFailure(`give either --${twice} or ${twice}: in --filter, not both`);
  for (const [key, value] of Object.entries(labelSelectorOf(options.selector ?? []).labels)) {
    if ((text.labels?.[key] ?? value) !== value) throw usageFailure(`-l and --filter want different values of ${key}`);
  }
}

/** A filter that these jobs pass; others may pass it too. */
export function filterOfJobs(jobs: readonly Job[]): { readonly namespace: string; readonly names: string[] } {
  const namespaces = new Set(jobs.map((job) => job.metadata?.namespace ?? ""));
  const [namespace = ""] = namespaces;
  const names = jobs.map((job) => job.metadata?.name ?? "");
  return {
    namespace: namespaces.size === 1 ? namespace : "",
    names: names.length <= FILTER_NAMES_MAX ? names : [],
  };
}

/** A condition on jobs. Null: the filter of the service says everything. */
export type LocalFilter = ((job: Pick<Job, "metadata">) => boolean) | null;

/** The conditions of the options that no filter of the service expresses. */
export async function localFilterOf(run: Pick<Run, "client">, options: JobFilterOptions): Promise<LocalFilter> {
  const { others } = labelSelectorOf(options.selector ?? []);
  const me = options.mine === true ? await ownName(run) : null;
  if (others.length === 0 && me === null) return null;
  return ({ metadata }) => passes(metadata?.labels ?? {}, others) && (me === null || metadata?.createdBy === me);
}
