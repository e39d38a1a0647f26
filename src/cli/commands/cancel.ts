import { JobService } from "../../gen/gangway/v1/job_service_pb.ts";
import { EXIT } from "../exit.ts";
import { resolveJobName } from "../jobs/job-name.ts";
import { namespaceOption } from "../options.ts";
import { qualifiedName } from "../output/job-text.ts";
import { printLines } from "../output/print.ts";
import { examples, onRun, type Registrar } from "../run-command.ts";

export function registerCancel(registrar: Registrar): void {
  const command = registrar.program
    .command("cancel")
    .description("End jobs and keep their records")
    .argument("<name...>", "names of jobs, as NAME or KIND/NAME")
    .option("--reason <text>", "reason that the job's condition and events show")
    .addOption(namespaceOption())
    .addHelpText("after", examples('gangway cancel llama-pretrain --reason "wrong data set"'));
  type CancelOptions = { namespace: string; reason?: string };
  onRun<CancelOptions>(registrar, command, async (run, names, { namespace, reason = "" }) => {
    for (const argument of names) {
      const name = await resolveJobName(run, argument, namespace);
      const { job } = await run.client.call(JobService.method.cancelJob, { namespace, name, reason });
      printLines(run, [`${job === undefined ? name : qualifiedName(job)} cancelled`]);
    }
    return EXIT.ok;
  });
}
