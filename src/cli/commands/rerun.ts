import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Job, JobPhase, type JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { JobService, JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { CommandFailure, EXIT, usageFailure } from "../exit.ts";
import { getJobsByName } from "../jobs/job-name.ts";
import { waitForDeletion } from "../jobs/wait-for-deletion.ts";
import { waitForEnd } from "../jobs/wait-for-end.ts";
import { checkTimeout, timeoutOption } from "../options.ts";
import { phaseWord, qualifiedName, TERMINAL } from "../output/job-text.ts";
import { printLines } from "../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../run-command.ts";

type RerunOptions = { readonly name?: string; readonly replace?: boolean; wait?: boolean; timeout?: number };

/** The service takes prefixes of generated names up to this length. */
const PREFIX_MAX = 50;

export function registerRerun(registrar: Registrar): void {
  const command = registrar.program
    .command("rerun")
    .summary("Submit a job anew")
    .description(
      "Submit a job anew, with the specification, labels and annotations that it has.\n" +
        "The new job gets a new name: NAME and a random suffix, or that of --name. With --replace it keeps the name, " +
        "and the record of the job that has ended is deleted first.",
    )
    .argument("<name>", "name of the job, as NAME or KIND/NAME")
    .option("--name <name>", "name of the new job")
    .option("--replace", "delete the record of the ended job, and keep its name")
    .option("--wait", "print the progress of the new job until it has ended; exit status 1 if it did not succeed")
    .addOption(timeoutOption())
    .addHelpText("after", examples("gangway rerun llama-pretrain", "gangway rerun llama-pretrain --replace --wait"));
  onRun<RerunOptions>(registrar, command, async (run, [argument = ""], options) => {
    checkOptions(options);
    const [job] = await getJobsByName(run, [argument], JobView.FULL);
    if (job === undefined) throw new Error("the service returned no job");
    if (options.replace === true) await deleteEnded(run, job, options.timeout ?? null);
    const created = await run.client.call(JobService.method.createJob, { job: anew(job, options) });
    const jobs = created.job === undefined ? [] : [created.job];
    printLines(
      run,
      jobs.map((one) => `${qualifiedName(one)} created`),
    );
    if (options.wait !== true) return EXIT.ok;
    const report = (line: string) => run.deps.stdoutAsIs(`${line}\n`);
    return waitForEnd(run, jobs, { timeoutMs: options.timeout ?? null, report });
  });
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
