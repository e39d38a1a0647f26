import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { JobService } from "../../gen/gangway/v1/job_service_pb.ts";
import { EXIT } from "../exit.ts";
import { resolveJobName } from "../jobs/job-name.ts";
import { waitForDeletion } from "../jobs/wait-for-deletion.ts";
import { checkTimeout, namespaceOption, timeoutOption } from "../options.ts";
import { qualifiedName } from "../output/job-text.ts";
import { printLines } from "../output/print.ts";
import { examples, onRun, type Registrar } from "../run-command.ts";

export function registerDelete(registrar: Registrar): void {
  const command = registrar.program
    .command("delete")
    .summary("End jobs and delete their records")
    .description("End jobs, remove their objects from the clusters, then delete their records.")
    .argument("<name...>", "names of jobs, as NAME or KIND/NAME")
    .option("--wait", "wait until the records are deleted")
    .addOption(namespaceOption())
    .addOption(timeoutOption())
    .addHelpText(
      "after",
      examples("gangway delete llama-pretrain", "gangway delete llama-pretrain --wait --timeout 2m"),
    );
  type DeleteOptions = { namespace: string; wait?: boolean; timeout?: number };
  onRun<DeleteOptions>(registrar, command, async (run, names, options) => {
    checkTimeout(options);
    const { namespace } = options;
    const deleted: Job[] = [];
    for (const argument of names) {
      const name = await resolveJobName(run, argument, namespace);
      const { job } = await run.client.call(JobService.method.deleteJob, { namespace, name });
      if (job !== undefined) deleted.push(job);
    }
    const onDeleted = (job: Job) => printLines(run, [`${qualifiedName(job)} deleted`]);
    if (options.wait === true)
      return waitForDeletion(run, deleted, { namespace, timeoutMs: options.timeout ?? null, onDeleted });
    deleted.forEach(onDeleted);
    return EXIT.ok;
  });
}
