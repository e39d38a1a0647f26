import type { JsonValue } from "@bufbuild/protobuf";
import { JobService, JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import type { JobRef } from "../jobs/job-name.ts";
import { readTemplates, type TemplateFiles } from "../jobs/read-templates.ts";
import { addJobSelection, changeJobs, type JobSelectionOptions, selectJobs } from "../jobs/select-jobs.ts";
import { partialSpec, updateJob } from "../jobs/update-job.ts";
import { checkNoFixedSettings, refuseFixedSettings } from "../manifest/setting-options.ts";
import { NOT_ENDED } from "../output/job-words.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { usageFailure } from "../shell/exit.ts";
import { parseInt32, repeated } from "../shell/options.ts";

/** Settings whose option selects jobs. */
const SELECTS = ["queue"];

type Changes = {
  readonly priority?: number;
  readonly priorityClass?: string;
  readonly label?: readonly string[];
  readonly template?: readonly string[];
};

export function registerUpdate(registrar: Registrar): void {
  const command = addJobSelection(registrar.program.command("update"))
    .description("Change the priority, the priority class, the labels or the pod templates of jobs")
    .option("--priority <number>", "priority in its queue; higher numbers are admitted first", parseInt32)
    .option("--priority-class <name>", 'priority class, whose value becomes the priority; "" for none')
    .option("--label <key=value>", "set a label, or remove it with KEY-; may be repeated", repeated)
    .option(
      "--template <type=file>",
      "change a pod template of a suspended job: labels, annotations, nodeSelector, affinity, tolerations and " +
        "schedulingGates of the file take the place of the job's; may be repeated",
      repeated,
    )
    .addHelpText(
      "after",
      examples(
        "gangway update llama-pretrain --priority 100",
        "gangway update llama-pretrain --label team=nlp --label old-",
        "gangway update -l sweep=lr --priority 5 --yes",
        "gangway update llama-pretrain --template Worker=nodes.yaml",
      ),
    );
  refuseFixedSettings(command, SELECTS);
  onRun<JobSelectionOptions & Changes>(registrar, command, async (run, args, options) => {
    // Without names, --queue selects jobs.
    checkNoFixedSettings(args.length > 0 ? options : { ...options, queue: undefined }, args[0] ?? "NAME");
    const { priority, priorityClass, label = [], template = [] } = options;
    if (priority === undefined && priorityClass === undefined && label.length + template.length === 0)
      throw usageFailure("there is nothing to change; give --priority, --priority-class, --label or --template");
    checkLabelChanges(label);
    const templates = await readTemplates(template, run.deps);
    const jobs = await selectJobs(run, args, { options, verb: "update", phases: NOT_ENDED });
    const change = (job: JobRef) => applyChanges(run, job, { ...options, templates });
    return changeJobs(run, jobs, { change, done: "updated" });
  });
}

/** The message takes any JSON, which its type does not say. */
function asReplica([type, template]: TemplateFiles[number]): [string, { template: Record<string, JsonValue> }] {
  return [type, { template: template as Record<string, JsonValue> }];
}

type Applied = Changes & { readonly templates: TemplateFiles };

async function applyChanges(run: Run, job: JobRef, changes: Applied): Promise<void> {
  const { priority, priorityClass, label = [], templates } = changes;
  const labelUpdate = label.length === 0 ? null : await updateOfLabels(run, job, label);
  const spec = {
    ...(priority === undefined ? {} : { priority }),
    ...(priorityClass === undefined ? {} : { priorityClassName: priorityClass }),
    ...(templates.length === 0 ? {} : { replicaSpecs: Object.fromEntries(templates.map(asReplica)) }),
  };
  const paths = [
    ...(priority === undefined ? [] : ["spec.priority"]),
    ...(priorityClass === undefined ? [] : ["spec.priority_class_name"]),
    ...(labelUpdate === null ? [] : ["metadata.labels"]),
    ...templates.map(([type]) => `spec.replica_specs.${type}.template`),
  ];
  await updateJob(run, job, "updated", { spec: partialSpec(spec), ...labelUpdate, paths });
}

const SETS_LABEL = /^([^=]+)=(.*)$/;

function checkLabelChanges(changes: readonly string[]): void {
  const wrong = changes.find((change) => !SETS_LABEL.test(change) && !/^[^=]+-$/.test(change));
  if (wrong !== undefined) throw usageFailure(`--label must be KEY=VALUE or KEY-, not ${wrong}`);
}

/**
 * Applies label changes to the labels that the job has. Returns all labels, with the version that they were read from:
 * the service refuses the update if another caller has changed the job since.
 */
async function updateOfLabels(run: Run, ref: JobRef, changes: readonly string[]) {
  const { job } = await run.client.call(JobService.method.getJob, { ...ref, view: JobView.BASIC });
  const labels: Record<string, string> = { ...job?.metadata?.labels };
  for (const change of changes) {
    const [, key = "", value = ""] = SETS_LABEL.exec(change) ?? [];
    if (key !== "") labels[key] = value;
    else delete labels[change.slice(0, -1)];
  }
  return { labels, resourceVersion: job?.metadata?.resourceVersion ?? "" };
}
