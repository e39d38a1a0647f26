import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Job, JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { JobService, JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { qualifiedName } from "../job-text.ts";
import { namedJob } from "../named-job.ts";
import { printLines } from "../output.ts";
import { examples, namespaceOption, onRun, type Registrar, type Run, repeated } from "../shell.ts";

type Named = { namespace: string };
type Spec = Exclude<NonNullable<MessageInitShape<typeof JobSchema>["spec"]>, { $typeName: string }>;
type Which = { readonly namespace: string; readonly name: string };
type Change = {
  readonly spec?: Spec;
  readonly labels?: Record<string, string>;
  readonly resourceVersion?: string;
  readonly paths: readonly string[];
};

export function registerUpdate(registrar: Registrar): void {
  const command = registrar.program
    .command("update")
    .description("change the priority or the labels of a job")
    .argument("<name>", "name of a job, as NAME or KIND/NAME")
    .option("--priority <number>", "its place in its queue: higher is earlier", wholeNumber("--priority"))
    .option("--label <key=value>", "set a label, or remove it with KEY-; may be given more than once", repeated)
    .addOption(namespaceOption())
    .addHelpText(
      "after",
      examples(
        "gangway update llama-pretrain --priority 100",
        "gangway update llama-pretrain --label team=nlp --label old-",
      ),
    );
  onRun<Named & { priority?: number; label?: readonly string[] }>(
    registrar,
    command,
    async (run, [given = ""], options) => {
      const { namespace, priority, label = [] } = options;
      if (priority === undefined && label.length === 0)
        throw usageFailure("nothing to change: give --priority or --label");
      const which = { namespace, name: await namedJob(run, given, namespace) };
      const relabelled = label.length === 0 ? null : await relabel(run, which, label);
      await update(run, which, "updated", {
        ...(priority === undefined ? {} : { spec: specOf({ priority }) }),
        ...relabelled,
        paths: [
          ...(priority === undefined ? [] : ["spec.priority"]),
          ...(relabelled === null ? [] : ["metadata.labels"]),
        ],
      });
      return EXIT.ok;
    },
  );
}

export function registerSuspend(registrar: Registrar): void {
  registerSwitch(registrar, "suspend", {
    suspend: true,
    done: "suspended",
    description: "take jobs off their clusters and out of their queues, and keep them for later",
  });
}

export function registerResume(registrar: Registrar): void {
  registerSwitch(registrar, "resume", {
    suspend: false,
    done: "resumed",
    description: "let suspended jobs wait for a new admission",
  });
}

export function registerScale(registrar: Registrar): void {
  const command = registrar.program
    .command("scale")
    .description("change how many replicas a job has; on board only where its kind is elastic")
    .argument("<name>", "name of a job, as NAME or KIND/NAME")
    .argument("<role=replicas...>", "replica types with their new numbers, e.g. Worker=8")
    .addOption(namespaceOption())
    .addHelpText("after", examples("gangway scale llama-pretrain Worker=8"));
  onRun<Named>(registrar, command, async (run, [given = "", ...pairs], { namespace }) => {
    const replicaSpecs = Object.fromEntries(pairs.map(roleAndCount));
    const change = { spec: specOf({ replicaSpecs }), paths: ["spec.replica_specs.*.replicas"] };
    await update(run, { namespace, name: await namedJob(run, given, namespace) }, "scaled", change);
    return EXIT.ok;
  });
}

function registerSwitch(
  registrar: Registrar,
  name: string,
  { suspend, done, description }: { readonly suspend: boolean; readonly done: string; readonly description: string },
): void {
  const command = registrar.program
    .command(name)
    .description(description)
    .argument("<name...>", "names of jobs, as NAME or KIND/NAME")
    .addOption(namespaceOption())
    .addHelpText("after", examples(`gangway ${name} llama-pretrain`));
  onRun<Named>(registrar, command, async (run, names, { namespace }) => {
    const change = { spec: specOf({ runPolicy: { suspend } }), paths: ["spec.run_policy.suspend"] };
    for (const one of names) await update(run, { namespace, name: await namedJob(run, one, namespace) }, done, change);
    return EXIT.ok;
  });
}

async function update(run: Run, which: Which, done: string, { spec, labels, resourceVersion, paths }: Change) {
  const metadata = { ...which, ...(labels && { labels }), ...(resourceVersion && { resourceVersion }) };
  const job = { metadata, ...(spec && { spec }) };
  const updated = await run.client.call(JobService.method.updateJob, { job, updateMask: { paths: [...paths] } });
  printLines(run, [`${updated.job === undefined ? which.name : qualifiedName(updated.job)} ${done}`]);
}

/** The labels that a job has, changed as asked, and the version that this was read from: nobody else's change is overwritten. */
async function relabel(run: Run, which: Which, changes: readonly string[]) {
  const { job } = await run.client.call(JobService.method.getJob, { ...which, view: JobView.BASIC });
  const labels: Record<string, string> = { ...labelsOf(job) };
  for (const change of changes) {
    const [, key = "", value] = /^([^=]+)=(.*)$/.exec(change) ?? [];
    if (value !== undefined) labels[key] = value;
    else if (change.endsWith("-")) delete labels[change.slice(0, -1)];
    else throw usageFailure(`--label must be KEY=VALUE or KEY-, not ${change}`);
  }
  return { labels, resourceVersion: job?.metadata?.resourceVersion ?? "" };
}

function labelsOf(job: Job | undefined): Readonly<Record<string, string>> {
  return job?.metadata?.labels ?? {};
}

/** What the mask does not name is not read: the rest of a spec may be missing. */
function specOf(members: Partial<Spec>): Spec {
  return { ...members } as Spec;
}

function roleAndCount(pair: string): [string, { replicas: number }] {
  const [, role = "", count = ""] = /^([^=]+)=(\d{1,9})$/.exec(pair) ?? [];
  if (role === "") throw usageFailure(`replicas must be ROLE=NUMBER, e.g. Worker=8, not ${pair}`);
  return [role, { replicas: Number(count) }];
}

function wholeNumber(option: string): (text: string) => number {
  return (text) => {
    if (/^-?\d{1,10}$/.test(text) && Math.abs(Number(text)) < 2 ** 31) return Number(text);
    throw usageFailure(`${option} must be a whole number of 32 bits, not ${text}`);
  };
}
