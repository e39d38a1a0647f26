import { addJobFilterOptions } from "../jobs/job-filter.ts";
import { JOBS_ARGUMENT } from "../jobs/job-name.ts";
import { type WatchOptions, watchJobs } from "../jobs/watch-jobs.ts";
import { examples, onRun, type Registrar } from "../run/run-command.ts";
import { noHeadersOption, outputOption } from "../shell/options.ts";

export function registerWatch(registrar: Registrar): void {
  const command = addJobFilterOptions(registrar.program.command("watch"))
    .description("Show jobs, then every change of them, until interrupted")
    .argument("[name...]", `${JOBS_ARGUMENT} (default: all jobs that the other options select)`)
    .addOption(noHeadersOption())
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples("gangway watch", "gangway watch llama-pretrain", "gangway watch -A --queue research -o json"),
    );
  onRun<WatchOptions>(registrar, command, (run, args, options) => watchJobs(run, args, options));
}
