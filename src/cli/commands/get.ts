import { create, type DescMessage } from "@bufbuild/protobuf";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Job, JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { JobView, ListJobsResponseSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import { addFilterTextOptions, textFilterOf } from "../jobs/filter-text.ts";
import { addJobFilterOptions, hasFilter, type JobFilterOptions, withKind } from "../jobs/job-filter.ts";
import { getJobByName, getJobsByName, JOBS_ARGUMENT, jobArguments } from "../jobs/job-name.ts";
import { listJobs } from "../jobs/list-jobs.ts";
import { jobsTable, MARK_TEXT, qualifiedName } from "../output/job-text.ts";
import { type PrintableResponse, printResponse, tableWidth } from "../output/print.ts";
import { CallError } from "../rpc/call-error.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";
import { isTable, limitOption, noHeadersOption, type OutputFormat, outputOption } from "../shell/options.ts";

type GetOptions = JobFilterOptions & {
  orderBy?: string;
  sortBy?: string;
  limit: number;
  watch?: boolean;
  output: OutputFormat;
};

/** `gangway get` and `gangway list`: the same command, each with the habits that its name brings. */
export function registerGetAndList(registrar: Registrar): void {
  const get = addGetOptions(registrar.program.command("get"))
    .summary("Show jobs by name, or list them")
    .description("Show jobs by name. Without names, list jobs, as `gangway list` does.")
    .addHelpText(
      "after",
      examples(
        "gangway get",
        "gangway get llama-pretrain bert-finetune -o wide",
        "gangway get llama-pretrain -o yaml",
        "gangway get llama-pretrain -o jsonpath='{.status.phase}'",
        "gangway get -o custom-columns=NAME:.metadata.name,CLUSTER:.status.admission.cluster",
      ),
    );
  const list = addGetOptions(registrar.program.command("list"))
    .alias("ls")
    .description("List jobs")
    .addHelpText(
      "after",
      examples(
        "gangway list",
        "gangway list -A --phase waiting,running --queue research",
        "gangway list -l team=nlp,tier=gold --kind PyTorchJob -o name",
        "gangway list --filter 'phase:waiting queue:nlp+ owner:me age:>1h' --order-by wait_since",
        "gangway list --filter 'phase:failed ended:<1d' --order-by 'complete_time desc'",
        "gangway list --watch",
      ),
    );
  for (const command of [get, list]) onRun<GetOptions>(registrar, command, getOrList);
}

function addGetOptions(command: Command): Command {
  return addFilterTextOptions(addJobFilterOptions(command))
    .argument("[name...]", JOBS_ARGUMENT)
    .addOption(
      new Option("--order-by <order>", "order of the jobs (default: create_time)").choices([
        "create_time",
        "create_time desc",
        "name",
        "priority desc",
        "complete_time desc",
        "wait_since",
      ]),
    )
    .addOption(
      new Option("--sort-by <path>", "the same by the names of kubectl: name, age or priority, or a path of them")
        .argParser(parseSortBy)
        .conflicts("orderBy"),
    )
    .addOption(limitOption())
    .option("-w, --watch", "then show every change, until interrupted")
    .addOption(noHeadersOption())
    .addOption(outputOption());
}

/** Words for the orders of the service, also as paths of kubectl and of the API's JSON. */
const SORTS: Readonly<Record<string, string>> = {
  name: "name",
  "metadata.name": "name",
  age: "create_time",
  create_time: "create_time",
  createTime: "create_time",
  "metadata.creationTimestamp": "create_time",
  "metadata.createTime": "create_time",
  priority: "priority desc",
  "spec.priority": "priority desc",
};

function parseSortBy(text: string): string {
  const order = SORTS[text.replace(/^\{?\.?/, "").replace(/\}$/, "")];
  if (order !== undefined) return order;
  throw new InvalidArgumentError(`Allowed are ${Object.keys(SORTS).join(", ")}.`);
}

async function getOrList(run: Run, args: readonly string[], given: GetOptions): Promise<number> {
  const sorted = given.sortBy === undefined ? given : { ...given, orderBy: given.sortBy };
  const isOfOthers = textFilterOf(run, given).namespaces !== undefined;
  const options = isOfOthers ? { ...sorted, allNamespaces: true } : sorted;
  const { kindWord, jobs: named } = await jobArguments(run, args, { kindAlone: true });
  if (options.watch === true) {
    if (options.orderBy !== undefined) throw usageFailure("--watch and --order-by cannot be combined");
    const { watchJobs } = await import("../jobs/watch-jobs.ts");
    return watchJobs(run, args, options);
  }
  if (named.length === 0) return printKind(run, kindWord, options);
  if (hasFilter(options)) throw usageFailure("give either names of jobs or options that select jobs, not both");
  const jobs = await getJobsByName(run, args, JobView.FULL);
  const [only] = jobs;
  if (only !== undefined && jobs.length === 1) return printOne(run, only, options);
  printJobs(run, jobs, options, { jobs: [...jobs] });
  return EXIT.ok;
}

function printOne(run: Run, job: Job, options: GetOptions): number {
  printWithMarks(run, options.output, { ...table(run, [job], options), schema: JobSchema, message: job });
  return EXIT.ok;
}

/** Lists the jobs of a kind, or of any. A word in the singular is the job that has this name, if there is one. */
async function printKind(run: Run, kindWord: string | null, options: GetOptions): Promise<number> {
  const job = kindWord === null || hasFilter(options) ? null : await jobNamed(run, kindWord);
  return job === null ? printList(run, withKind(options, kindWord)) : printOne(run, job, options);
}

/** The job that has the name of a kind in the singular. Null: there is none, so the word means the kind. */
async function jobNamed(run: Run, word: string): Promise<Job | null> {
  if (/s$/i.test(word)) return null;
  try {
    return await getJobByName(run, [`job/${word}`], JobView.FULL);
  } catch (error) {
    if (error instanceof CallError) return null;
    throw error;
  }
}

async function printList(run: Run, options: GetOptions): Promise<number> {
  const { limit, output } = options;
  // A manifest needs its templates.
  const view = isTable(output) || output === "name" ? JobView.BASIC : JobView.FULL;
  const { jobs, total, isCut } = await listJobs(run, { ...options, view });
  printJobs(run, jobs, options, { jobs, totalEstimate: total });
  if (isCut) run.deps.stderr(`only the first ${limit} of ${total} jobs are shown; use --limit to see more\n`);
  return EXIT.ok;
}

function printJobs(
  run: Run,
  jobs: readonly Job[],
  options: GetOptions,
  list: { readonly jobs: Job[]; readonly totalEstimate?: number },
): void {
  const schema = ListJobsResponseSchema;
  printWithMarks(run, options.output, { ...table(run, jobs, options), schema, message: create(schema, list) });
}

/** Prints jobs, and explains a mark of their table. */
function printWithMarks<D extends DescMessage>(
  run: Run,
  output: OutputFormat,
  response: PrintableResponse<D> & { readonly hasMarks: boolean },
): void {
  printResponse(run, output, response);
  if (isTable(output) && response.hasMarks) run.deps.stderr(`${MARK_TEXT}\n`);
}

function table(run: Run, jobs: readonly Job[], { allNamespaces, output }: GetOptions) {
  const nowMs = run.deps.clock.nowMs();
  const marks = tableWidth(run, output) !== null;
  const shown = { nowMs, withNamespace: allNamespaces === true, wide: output === "wide", marks };
  return { ...jobsTable(jobs, shown), names: jobs.map(qualifiedName), none: "no jobs" };
}
