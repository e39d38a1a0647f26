import { JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { getJobsByName } from "../jobs/job-name.ts";
import { splitNames } from "../jobs/select-jobs.ts";
import { waitForEnd } from "../jobs/wait-for-end.ts";
import { timeoutOption } from "../options.ts";
import { examples, onRun, type Registrar } from "../run-command.ts";

export function registerWait(registrar: Registrar): void {
  const command = registrar.program
    .command("wait")
    .summary("Wait until jobs have ended")
    .description(
      "Wait until jobs have ended, and print each change.\n" +
        "Exit status: 0 if all jobs succeeded, 1 if one did not, 124 after the timeout.",
    )
    .argument("<name...>", "names of jobs, as NAME or KIND/NAME")
    .addOption(timeoutOption())
    .addHelpText(
      "after",
      examples("gangway wait llama-pretrain", "gangway wait llama-pretrain bert-finetune --timeout 1h"),
    );
  type WaitOptions = { timeout?: number };
  onRun<WaitOptions>(registrar, command, async (run, names, { timeout }) => {
    const jobs = await getJobsByName(run, splitNames(names), JobView.FULL);
    return waitForEnd(run, jobs, { timeoutMs: timeout ?? null, report: (line) => run.deps.stdoutAsIs(`${line}\n`) });
  });
}
