import { JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { getJobsByName } from "../jobs/job-name.ts";
import { addJobNamesOrFilter, type JobSelectionOptions, listSelected, namesGiven } from "../jobs/select-jobs.ts";
import { waitForEnd } from "../jobs/wait-for-end.ts";
import { timeoutOption } from "../options.ts";
import { examples, onRun, type Registrar } from "../run-command.ts";

export function registerWait(registrar: Registrar): void {
  const command = addJobNamesOrFilter(registrar.program.command("wait"))
    .summary("Wait until jobs have ended")
    .description(
      "Wait until jobs have ended, and print each change.\n" +
        "Exit status: 0 if all jobs succeeded, 1 if one did not, 124 after the timeout.",
    )
    .addOption(timeoutOption())
    .addHelpText(
      "after",
      examples("gangway wait llama-pretrain bert-finetune --timeout 1h", "gangway wait -l sweep=lr"),
    );
  type WaitOptions = JobSelectionOptions & { timeout?: number };
  onRun<WaitOptions>(registrar, command, async (run, args, options) => {
    const { timeout } = options;
    const names = namesGiven(args, options, "wait for");
    const jobs =
      names.length > 0
        ? await getJobsByName(run, names, JobView.FULL)
        : await listSelected(run, { ...options, view: JobView.FULL }, []);
    if (jobs.length === 0) run.deps.stderr("no jobs\n");
    return waitForEnd(run, jobs, { timeoutMs: timeout ?? null, report: (line) => run.deps.stdoutAsIs(`${line}\n`) });
  });
}
