import { JobService } from "../../gen/gangway/v1/job_service_pb.ts";
import { addJobSelection, changeJobs, type JobSelectionOptions, selectJobs } from "../jobs/select-jobs.ts";
import { qualifiedName } from "../output/job-text.ts";
import { NOT_ENDED } from "../output/job-words.ts";
import { printLines } from "../output/print.ts";
import { examples, onRun, type Registrar } from "../run/run-command.ts";

export function registerCancel(registrar: Registrar): void {
  const command = addJobSelection(registrar.program.command("cancel"))
    .description("End jobs and keep their records")
    .option("--reason <text>", "reason that the job's condition and events show")
    .addHelpText(
      "after",
      examples('gangway cancel llama-pretrain --reason "wrong data set"', "gangway cancel -l sweep=lr --yes"),
    );
  type CancelOptions = JobSelectionOptions & { reason?: string };
  onRun<CancelOptions>(registrar, command, async (run, args, options) => {
    const jobs = await selectJobs(run, args, { options, verb: "cancel", phases: NOT_ENDED });
    const { reason = "" } = options;
    const change = async (ref: { namespace: string; name: string }) => {
      const { job } = await run.client.call(JobService.method.cancelJob, { ...ref, reason });
      printLines(run, [`${job === undefined ? ref.name : qualifiedName(job)} cancelled`]);
    };
    return changeJobs(run, jobs, { change, done: "cancelled" });
  });
}
