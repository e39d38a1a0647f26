import { create } from "@bufbuild/protobuf";
import { Option } from "commander";
import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { JobService, ListJobsResponseSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import { EXIT } from "../exit.ts";
import { addJobFilterOptions, type JobFilterOptions, jobFilterOf } from "../jobs/job-filter.ts";
import { limitOption, type OutputFormat, outputOption } from "../options.ts";
import { jobsTable, qualifiedName } from "../output/job-text.ts";
import { printResponse } from "../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../run-command.ts";

type ListJobsOptions = JobFilterOptions & { orderBy?: string; limit: number; output: OutputFormat };

const PAGE_SIZE = 500;

export function registerList(registrar: Registrar): void {
  const command = addJobFilterOptions(registrar.program.command("list"))
    .description("List jobs")
    .addOption(
      new Option("--order-by <order>", "order of the jobs (default: create_time)").choices([
        "create_time",
        "create_time desc",
        "name",
        "priority desc",
      ]),
    )
    .addOption(limitOption())
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples(
        "gangway list",
        "gangway list -A --phase waiting --queue research",
        "gangway list -l team=nlp --kind PyTorchJob -o name",
      ),
    );
  onRun<ListJobsOptions>(registrar, command, async (run, _args, options) => {
    const { jobs, total, isCut } = await listJobs(run, options);
    const withNamespace = options.allNamespaces === true;
    printResponse(run, options.output, {
      ...jobsTable(jobs, { nowMs: run.deps.clock.nowMs(), withNamespace }),
      schema: ListJobsResponseSchema,
      message: create(ListJobsResponseSchema, { jobs: [...jobs], totalEstimate: total }),
      names: jobs.map(qualifiedName),
      none: "no jobs",
    });
    if (isCut) run.deps.stderr(`only the first ${options.limit} of ${total} jobs are shown; use --limit to see more\n`);
    return EXIT.ok;
  });
}

/** Fetches the pages of jobs up to the limit. */
async function listJobs(run: Run, options: ListJobsOptions) {
  const { orderBy = "", limit } = options;
  const filter = jobFilterOf(options, { names: [], kinds: run.deps.kinds });
  const jobs: Job[] = [];
  let pageToken = "";
  let total = 0;
  do {
    const pageSize = Math.min(PAGE_SIZE, limit - jobs.length);
    const page = await run.client.call(JobService.method.listJobs, { filter, orderBy, pageSize, pageToken });
    jobs.push(...page.jobs);
    pageToken = page.nextPageToken;
    total = page.totalEstimate;
  } while (pageToken !== "" && jobs.length < limit);
  return { jobs, total, isCut: pageToken !== "" };
}
