import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { JobService } from "../../gen/gangway/v1/job_service_pb.ts";
import { hasFilter } from "../jobs/job-filter.ts";
import type { JobRef } from "../jobs/job-name.ts";
import { jobsOfManifests } from "../jobs/manifest-jobs.ts";
import {
  addJobSelection,
  changeJobs,
  countText,
  type JobSelectionOptions,
  type SelectedJobs,
  selectJobs,
} from "../jobs/select-jobs.ts";
import { waitForDeletion } from "../jobs/wait-for-deletion.ts";
import { filenameOption } from "../manifest/read-ready.ts";
import { qualifiedName } from "../output/job-text.ts";
import { printLines } from "../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { usageFailure } from "../shell/exit.ts";
import { timeoutOption } from "../shell/options.ts";

type DeleteOptions = JobSelectionOptions & { wait?: boolean; timeout?: number; filename?: string[] };

export function registerDelete(registrar: Registrar): void {
  const command = addJobSelection(registrar.program.command("delete"))
    .summary("End jobs and delete their records")
    .description(
      "End jobs, remove their objects from the clusters, then delete their records.\n" +
        "Waits until the records are gone, so that a job of the same name can be submitted.\n" +
        "Exit status: 124 after the timeout.",
    )
    .addOption(filenameOption())
    .option("--wait", "wait until the records are gone; this is the default")
    .option("--no-wait", "only ask for the deletion; so does --wait=false")
    .addOption(timeoutOption())
    .addHelpText(
      "after",
      examples(
        "gangway delete llama-pretrain",
        "gangway delete llama-pretrain && gangway submit llama.yaml",
        "gangway delete llama-pretrain --timeout 2m",
        "gangway delete llama-pretrain --wait=false",
        "gangway delete --phase succeeded,failed --yes",
        "gangway delete -f jobs/",
      ),
    );
  onRun<DeleteOptions>(registrar, command, async (run, args, options) => {
    const { wait = true, timeout } = options;
    if (!wait && timeout !== undefined) throw usageFailure("--timeout and --wait=false cannot be combined");
    const jobs = await jobsToDelete(run, args, options);
    const deleted: Job[] = [];
    const onDeleted = (job: Job) => printLines(run, [`${qualifiedName(job)} deleted`]);
    const change = async (ref: JobRef) => {
      const { job } = await run.client.call(JobService.method.deleteJob, ref);
      if (job === undefined) return;
      deleted.push(job);
      if (!wait) printLines(run, [`${qualifiedName(job)} is being deleted`]);
    };
    const status = await changeJobs(run, jobs, { change, done: wait ? null : "being deleted" });
    if (!wait || deleted.length === 0) return status;
    const waited = await waitForDeletion(run, deleted, { timeoutMs: timeout ?? null, onDeleted });
    if (jobs.isSelection) run.deps.stderr(`${countText(deleted.length)} deleted\n`);
    return Math.max(status, waited);
  });
}

/** The jobs of manifests, or those that arguments name or options select. */
async function jobsToDelete(run: Run, args: readonly string[], options: DeleteOptions): Promise<SelectedJobs> {
  const { filename, all, ignoreNotFound = false } = options;
  if (filename === undefined) return selectJobs(run, args, { options, verb: "delete" });
  if (args.length > 0 || hasFilter(options) || all === true)
    throw usageFailure("give either --filename, or names of jobs, or options that select jobs");
  const read = { otherwise: "nothing was deleted", ignoresMissing: ignoreNotFound };
  return { refs: await jobsOfManifests(run, filename, read), isSelection: false };
}
