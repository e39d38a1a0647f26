import { create } from "@bufbuild/protobuf";
import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { JobService, JobView, ListJobsResponseSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import { awaitForgotten } from "../await-forgotten.ts";
import { awaitJobs } from "../await-jobs.ts";
import { EXIT } from "../exit.ts";
import { jobsTable, qualifiedName } from "../job-text.ts";
import { getNamedJob, namedJob } from "../named-job.ts";
import { printLines, show } from "../output.ts";
import {
  checkTimeout,
  examples,
  namespaceOption,
  type OutputFormat,
  onRun,
  outputOption,
  type Registrar,
  type Run,
  timeoutOption,
} from "../shell.ts";

type Named = { namespace: string };

export function registerGet(registrar: Registrar): void {
  const command = registrar.program
    .command("get")
    .description("show jobs by name")
    .argument("<name...>", "names of jobs, as NAME or KIND/NAME")
    .addOption(namespaceOption())
    .addOption(outputOption())
    .addHelpText("after", examples("gangway get llama-pretrain", "gangway get llama-pretrain -o yaml"));
  onRun<Named & { output: OutputFormat }>(registrar, command, async (run, names, { namespace, output }) => {
    const jobs = await getJobs(run, names, namespace);
    const [only] = jobs;
    const shown = { ...tableOf(run, jobs), names: jobs.map(qualifiedName), none: "" };
    if (only !== undefined && jobs.length === 1) show(run, output, { ...shown, schema: JobSchema, message: only });
    else
      show(run, output, {
        ...shown,
        schema: ListJobsResponseSchema,
        message: create(ListJobsResponseSchema, { jobs: [...jobs] }),
      });
    return EXIT.ok;
  });
}

export function registerWait(registrar: Registrar): void {
  const command = registrar.program
    .command("wait")
    .description("show the progress of jobs until they have ended; status 1 if one did not succeed")
    .argument("<name...>", "names of jobs, as NAME or KIND/NAME")
    .addOption(namespaceOption())
    .addOption(timeoutOption())
    .addHelpText(
      "after",
      examples("gangway wait llama-pretrain", "gangway wait llama-pretrain bert-finetune --timeout 1h"),
    );
  onRun<Named & { timeout?: number }>(registrar, command, async (run, names, { namespace, timeout }) => {
    const jobs = await getJobs(run, names, namespace);
    return awaitJobs(run, jobs, { timeoutMs: timeout ?? null, report: (line) => run.deps.stdout(`${line}\n`) });
  });
}

export function registerCancel(registrar: Registrar): void {
  const command = registrar.program
    .command("cancel")
    .description("end jobs and keep their records")
    .argument("<name...>", "names of jobs, as NAME or KIND/NAME")
    .option("--reason <text>", "shown in the job's condition and events")
    .addOption(namespaceOption())
    .addHelpText("after", examples('gangway cancel llama-pretrain --reason "wrong data set"'));
  onRun<Named & { reason?: string }>(registrar, command, async (run, names, { namespace, reason = "" }) => {
    for (const given of names) {
      const name = await namedJob(run, given, namespace);
      const { job } = await run.client.call(JobService.method.cancelJob, { namespace, name, reason });
      printLines(run, [`${job === undefined ? name : qualifiedName(job)} cancelled`]);
    }
    return EXIT.ok;
  });
}

export function registerDelete(registrar: Registrar): void {
  const command = registrar.program
    .command("delete")
    .description("end jobs, remove everything of them from their clusters, then forget them")
    .argument("<name...>", "names of jobs, as NAME or KIND/NAME")
    .option("--wait", "wait until they are forgotten")
    .addOption(namespaceOption())
    .addOption(timeoutOption())
    .addHelpText(
      "after",
      examples("gangway delete llama-pretrain", "gangway delete llama-pretrain --wait --timeout 2m"),
    );
  onRun<Named & { wait?: boolean; timeout?: number }>(registrar, command, async (run, names, options) => {
    checkTimeout(options);
    const { namespace } = options;
    const deleted: Job[] = [];
    for (const given of names) {
      const name = await namedJob(run, given, namespace);
      const { job } = await run.client.call(JobService.method.deleteJob, { namespace, name });
      if (job !== undefined) deleted.push(job);
    }
    const report = (job: Job) => printLines(run, [`${qualifiedName(job)} deleted`]);
    if (options.wait === true)
      return awaitForgotten(run, deleted, { namespace, timeoutMs: options.timeout ?? null, report });
    deleted.forEach(report);
    return EXIT.ok;
  });
}

async function getJobs(run: Run, names: readonly string[], namespace: string): Promise<readonly Job[]> {
  const jobs: Job[] = [];
  for (const given of names) {
    const job = await getNamedJob(run, given, { namespace, view: JobView.FULL });
    if (job !== undefined) jobs.push(job);
  }
  return jobs;
}

function tableOf(run: Run, jobs: readonly Job[]) {
  return jobsTable(jobs, { nowMs: run.deps.clock.nowMs(), withNamespace: false });
}
