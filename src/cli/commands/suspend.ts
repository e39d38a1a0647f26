import { EXIT } from "../exit.ts";
import { resolveJobName } from "../jobs/job-name.ts";
import { partialSpec, updateJob } from "../jobs/update-job.ts";
import { namespaceOption } from "../options.ts";
import { examples, onRun, type Registrar } from "../run-command.ts";

/** `gangway suspend` and `gangway resume`. */
export function registerSuspendAndResume(registrar: Registrar): void {
  registerSuspendChange(registrar, "suspend", {
    suspend: true,
    verb: "suspended",
    description: "Take jobs off their clusters and out of their queues until they are resumed",
  });
  registerSuspendChange(registrar, "resume", {
    suspend: false,
    verb: "resumed",
    description: "Return suspended jobs to their queues",
  });
}

function registerSuspendChange(
  registrar: Registrar,
  name: string,
  change: { readonly suspend: boolean; readonly verb: string; readonly description: string },
): void {
  const command = registrar.program
    .command(name)
    .description(change.description)
    .argument("<name...>", "names of jobs, as NAME or KIND/NAME")
    .addOption(namespaceOption())
    .addHelpText("after", examples(`gangway ${name} llama-pretrain`));
  onRun<{ namespace: string }>(registrar, command, async (run, names, { namespace }) => {
    const spec = partialSpec({ runPolicy: { suspend: change.suspend } });
    for (const argument of names) {
      const job = { namespace, name: await resolveJobName(run, argument, namespace) };
      await updateJob(run, job, change.verb, { spec, paths: ["spec.run_policy.suspend"] });
    }
    return EXIT.ok;
  });
}
