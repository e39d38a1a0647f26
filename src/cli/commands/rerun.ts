import type { MessageInitShape } from "@bufbuild/protobuf";
import { Option } from "commander";
import type { SettingValues } from "../../core/kinds/manifest/settings.ts";
import { type Job, JobPhase, type JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { JobService, JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import type { JobRef } from "../jobs/job-name.ts";
import { addJobSelection, changeJobs, type JobSelectionOptions, selectJobs } from "../jobs/select-jobs.ts";
import { waitForDeletion } from "../jobs/wait-for-deletion.ts";
import { waitForEnd } from "../jobs/wait-for-end.ts";
import { addSettingOptions, setSettings, settingValues } from "../manifest/setting-options.ts";
import { qualifiedName } from "../output/job-text.ts";
import { phaseWord, TERMINAL } from "../output/job-words.ts";
import { printLines } from "../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { CommandFailure, EXIT, usageFailure } from "../shell/exit.ts";
import { checkTimeout, timeoutOption } from "../shell/options.ts";

/** Settings whose option selects jobs. */
const SELECTS = ["queue"];
const ENDED: readonly JobPhase[] = [JobPhase.SUCCEEDED, JobPhase.FAILED, JobPhase.CANCELLED];

type RerunOptions = JobSelectionOptions & {
  readonly name?: string;
  readonly replace?: boolean;
  wait?: boolean;
  timeout?: number;
};

/** The service takes prefixes of generated names up to this length. */
const PREFIX_MAX = 50;

export function registerRerun(registrar: Registrar): void {
  const command = addJobSelection(registrar.program.command("rerun"))
    .summary("Submit jobs anew")
    .description(
      "Submit jobs anew, each with the specification, labels and annotations that it has.\n" +
        "A selection takes jobs that have ended. A new job gets a new name: NAME and a random suffix, or that of " +
        "--name. With --replace it keeps the name, and the record of the job that has ended is deleted first.\n" +
        "Beside names of jobs, --queue is the queue of the new jobs.",
    )
    .option("--name <name>", "name of the new job")
    .option("--replace", "delete the record of the ended job, and keep its name")
    .option("--wait", "print the progress of the new job until it has ended; exit status 1 if it did not succeed")
    .addOption(new Option("--no-wait", "do not wait; this is the default").hideHelp())
    .addOption(timeoutOption());
  addSettingOptions(command, { heading: "Settings of the new jobs, in place of what they have", except: SELECTS });
  command.addHelpText(
    "after",
    examples(
      "gangway rerun llama-pretrain",
      "gangway rerun llama-pretrain --replace --wait",
      "gangway rerun llama-pretrain --queue nlp --max-runtime 12h",
      "gangway rerun -l sweep=lr --phase failed --yes",
    ),
  );
  onRun<RerunOptions>(registrar, command, async (run, args, given) => {
    const { options, settings } = withQueue(args, given);
    checkOptions(options);
    const selected = await selectJobs(run, args, { options, verb: "rerun", phases: ENDED });
    if (options.name !== undefined && selected.refs.length > 1)
      throw usageFailure(`--name is for one job, and these are ${selected.refs.length}`);
    const created: Job[] = [];
    const change = async (ref: JobRef) => {
      const job = await rerun(run, ref, options, settings);
      if (job !== null) created.push(job);
    };
    const status = await changeJobs(run, selected, { change, done: "submitted anew" });
    if (options.wait !== true) return status;
    const report = (line: string) => run.deps.stdoutAsIs(`${line}\n`);
    return Math.max(status, await waitForEnd(run, created, { timeoutMs: options.timeout ?? null, report }));
  });
}

/** `--queue` selects jobs; beside names of jobs it is the queue of the new ones. */
function withQueue(
  args: readonly string[],
  { queue, ...options }: RerunOptions,
): { readonly options: RerunOptions; readonly settings: SettingValues } {
  const settings = settingValues(options);
  if (queue === undefined) return { options, settings };
  if (args.length === 0) return { options: { ...options, queue }, settings };
  return { options, settings: new Map([...settings, ["queue", queue]]) };
}

/** Submits one job anew, and prints its name. */
async function rerun(run: Run, ref: JobRef, options: RerunOptions, settings: SettingValues): Promise<Job | null> {
  const { job } = await run.client.call(JobService.method.getJob, { ...ref, view: JobView.FULL });
  if (job === undefined) throw new Error("the service returned no job");
  if (job.spec !== undefined) setSettings(job.spec, settings);
  if (options.replace === true) await deleteEnded(run, job, options.timeout ?? null);
  const { job: created = null } = await run.client.call(JobService.method.createJob, { job: anew(job, options) });
  if (created !== null) printLines(run, [`${qualifiedName(created)} created`]);
  return created;
}

function checkOptions(options: RerunOptions): void {
  checkTimeout(options);
  if (options.name !== undefined && options.replace === true)
    throw usageFailure("--name and --replace cannot be combined");
}

/** A job that was suspended is to run now: it is not suspended any more. */
function anew({ metadata, spec }: Job, { name, replace }: RerunOptions): MessageInitShape<typeof JobSchema> {
  const { namespace = "", labels = {}, annotations = {}, name: old = "" } = metadata ?? {};
  const named = replace ? { name: old } : name === undefined ? { generateName: prefixOf(old) } : { name };
  const { runPolicy, ...rest } = spec ?? {};
  const newSpec =
    spec === undefined ? {} : { spec: { ...rest, ...(runPolicy && { runPolicy: { ...runPolicy, suspend: false } }) } };
  return { metadata: { namespace, labels, annotations, ...named }, ...newSpec } as MessageInitShape<typeof JobSchema>;
}

function prefixOf(name: string): string {
  return `${name.slice(0, PREFIX_MAX - 1)}-`;
}

async function deleteEnded(run: Run, job: Job, timeoutMs: number | null): Promise<void> {
  const { namespace = "", name = "" } = job.metadata ?? {};
  const phase = job.status?.phase ?? JobPhase.UNSPECIFIED;
  if (!TERMINAL.includes(phase)) {
    throw new CommandFailure(EXIT.refused, [
      `error: ${name} has not ended (${phaseWord(phase)}); cancel it first, or leave out --replace`,
    ]);
  }
  await run.client.call(JobService.method.deleteJob, { namespace, name });
  await waitForDeletion(run, [job], { timeoutMs, onDeleted: () => {} });
}
