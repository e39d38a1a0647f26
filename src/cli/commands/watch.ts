import { addJobFilterOptions } from "../jobs/job-filter.ts";
import { splitNames } from "../jobs/select-jobs.ts";
import { type WatchOptions, watchJobs } from "../jobs/watch-jobs.ts";
import { outputOption } from "../options.ts";
import { examples, onRun, type Registrar } from "../run-command.ts";

export function registerWatch(registrar: Registrar): void {
  const command = addJobFilterOptions(registrar.program.command("watch"))
    .description("Show jobs, then every change of them, until interrupted")
    .argument("[name...]", "names of jobs (default: all jobs that the other options select)")
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples("gangway watch", "gangway watch llama-pretrain", "gangway watch -A --queue research -o json"),
    );
  onRun<WatchOptions>(registrar, command, (run, args, options) => watchJobs(run, splitNames(args), options));
}
