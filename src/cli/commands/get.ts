import { create } from "@bufbuild/protobuf";
import { type Command, Option } from "commander";
import { type Job, JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { JobView, ListJobsResponseSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { addJobFilterOptions, hasFilter, type JobFilterOptions } from "../jobs/job-filter.ts";
import { getJobsByName } from "../jobs/job-name.ts";
import { listJobs } from "../jobs/list-jobs.ts";
import { splitNames } from "../jobs/select-jobs.ts";
import { isTable, limitOption, type OutputFormat, outputOption } from "../options.ts";
import { jobsTable, qualifiedName } from "../output/job-text.ts";
import { printResponse } from "../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../run-command.ts";

type GetOptions = JobFilterOptions & { orderBy?: string; limit: number; watch?: boolean; output: OutputFormat };

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
        "gangway list --watch",
      ),
    );
  for (const command of [get, list]) onRun<GetOptions>(registrar, command, getOrList);
}

function addGetOptions(command: Command): Command {
  return addJobFilterOptions(command)
    .argument("[name...]", "names of jobs, as NAME or KIND/NAME")
    .addOption(
      new Option("--order-by <order>", "order of the jobs (default: create_time)").choices([
        "create_time",
        "create_time desc",
        "name",
        "priority desc",
      ]),
    )
    .addOption(limitOption())
    .option("-w, --watch", "then show every change, until interrupted")
    .addOption(outputOption());
}

async function getOrList(run: Run, args: readonly string[], options: GetOptions): Promise<number> {
  const names = splitNames(args);
  if (options.watch === true) {
    if (options.orderBy !== undefined) throw usageFailure("--watch and --order-by cannot be combined");
    const { watchJobs } = await import("../jobs/watch-jobs.ts");
    return watchJobs(run, names, options);
  }
  if (names.length === 0) return printList(run, options);
  if (hasFilter(options)) throw usageFailure("give either names of jobs or options that select jobs, not both");
  const jobs = await getJobsByName(run, names, JobView.FULL);
  const [only] = jobs;
  if (only !== undefined && jobs.length === 1) {
    printResponse(run, options.output, { ...table(run, jobs, options), schema: JobSchema, message: only });
  } else printJobs(run, jobs, options, { jobs: [...jobs] });
  return EXIT.ok;
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
  printResponse(run, options.output, { ...table(run, jobs, options), schema, message: create(schema, list) });
}

function table(run: Run, jobs: readonly Job[], { allNamespaces, output }: GetOptions) {
  const nowMs = run.deps.clock.nowMs();
  const shown = { nowMs, withNamespace: allNamespaces === true, wide: output === "wide" };
  return { ...jobsTable(jobs, shown), names: jobs.map(qualifiedName), none: "no jobs" };
}
