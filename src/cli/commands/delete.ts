import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { JobService } from "../../gen/gangway/v1/job_service_pb.ts";
import { addJobSelection, changeJobs, type JobRef, type JobSelectionOptions, selectJobs } from "../jobs/select-jobs.ts";
import { waitForDeletion } from "../jobs/wait-for-deletion.ts";
import { checkTimeout, timeoutOption } from "../options.ts";
import { qualifiedName } from "../output/job-text.ts";
import { printLines } from "../output/print.ts";
import { examples, onRun, type Registrar } from "../run-command.ts";

export function registerDelete(registrar: Registrar): void {
  const command = addJobSelection(registrar.program.command("delete"))
    .summary("End jobs and delete their records")
    .description("End jobs, remove their objects from the clusters, then delete their records.")
    .option("--wait", "wait until the records are deleted")
    .addOption(timeoutOption())
    .addHelpText(
      "after",
      examples(
        "gangway delete llama-pretrain",
        "gangway delete llama-pretrain --wait --timeout 2m",
        "gangway delete --phase succeeded,failed --yes",
      ),
    );
  type DeleteOptions = JobSelectionOptions & { wait?: boolean; timeout?: number };
  onRun<DeleteOptions>(registrar, command, async (run, args, options) => {
    checkTimeout(options);
    const jobs = await selectJobs(run, args, { options, verb: "delete" });
    const deleted: Job[] = [];
    const onDeleted = (job: Job) => printLines(run, [`${qualifiedName(job)} deleted`]);
    const change = async (ref: JobRef) => {
      const { job } = await run.client.call(JobService.method.deleteJob, ref);
      if (job === undefined) return;
      deleted.push(job);
      if (options.wait !== true) onDeleted(job);
    };
    const status = await changeJobs(run, jobs, { change, done: "deleted", isSelection: args.length === 0 });
    if (options.wait !== true || deleted.length === 0) return status;
    const waited = await waitForDeletion(run, deleted, { timeoutMs: options.timeout ?? null, onDeleted });
    return Math.max(status, waited);
  });
}
