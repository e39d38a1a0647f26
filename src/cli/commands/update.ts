import { JobService, JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { resolveJobName } from "../jobs/job-name.ts";
import { partialSpec, updateJob } from "../jobs/update-job.ts";
import { namespaceOption, parseInt32, repeated } from "../options.ts";
import { examples, onRun, type Registrar, type Run } from "../run-command.ts";

export function registerUpdate(registrar: Registrar): void {
  const command = registrar.program
    .command("update")
    .description("Change the priority or the labels of a job")
    .argument("<name>", "name of the job, as NAME or KIND/NAME")
    .option("--priority <number>", "priority in its queue; higher numbers are admitted first", parseInt32)
    .option("--label <key=value>", "set a label, or remove it with KEY-; may be repeated", repeated)
    .addOption(namespaceOption())
    .addHelpText(
      "after",
      examples(
        "gangway update llama-pretrain --priority 100",
        "gangway update llama-pretrain --label team=nlp --label old-",
      ),
    );
  type UpdateOptions = { namespace: string; priority?: number; label?: readonly string[] };
  onRun<UpdateOptions>(registrar, command, async (run, [argument = ""], { namespace, priority, label = [] }) => {
    if (priority === undefined && label.length === 0)
      throw usageFailure("there is nothing to change; give --priority or --label");
    const job = { namespace, name: await resolveJobName(run, argument, namespace) };
    const labelUpdate = label.length === 0 ? null : await updateOfLabels(run, job, label);
    await updateJob(run, job, "updated", {
      ...(priority === undefined ? {} : { spec: partialSpec({ priority }) }),
      ...labelUpdate,
      paths: [
        ...(priority === undefined ? [] : ["spec.priority"]),
        ...(labelUpdate === null ? [] : ["metadata.labels"]),
      ],
    });
    return EXIT.ok;
  });
}

/**
 * Applies label changes to the labels that the job has. Returns all labels, with the version that they were read from:
 * the service refuses the update if another caller has changed the job since.
 */
async function updateOfLabels(
  run: Run,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  changes: readonly string[],
) {
  const { job } = await run.client.call(JobService.method.getJob, { namespace, name, view: JobView.BASIC });
  const labels: Record<string, string> = { ...job?.metadata?.labels };
  for (const change of changes) {
    const [, key = "", value] = /^([^=]+)=(.*)$/.exec(change) ?? [];
    if (value !== undefined) labels[key] = value;
    else if (change.endsWith("-")) delete labels[change.slice(0, -1)];
    else throw usageFailure(`--label must be KEY=VALUE or KEY-, not ${change}`);
  }
  return { labels, resourceVersion: job?.metadata?.resourceVersion ?? "" };
}
