import { create } from "@bufbuild/protobuf";
import { Option } from "commander";
import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import {
  type CreateJobResponse,
  CreateJobResponse_Outcome,
  CreateJobResponseSchema,
  JobView,
} from "../../gen/gangway/v1/job_service_pb.ts";
import { endedNote, existingJob, isPrintedFrom } from "../jobs/existing-job.ts";
import { type SubmitAnswer, submitJobs } from "../jobs/submit-jobs.ts";
import { waitForEnd } from "../jobs/wait-for-end.ts";
import { GroupedNotes } from "../manifest/grouped-notes.ts";
import { noteLine, type ReadyManifest } from "../manifest/read-manifests.ts";
import { filenameOption, ignoreForeignOption, readReady } from "../manifest/read-ready.ts";
import { addSettingOptions, SETTINGS_HEADING, settingValues } from "../manifest/setting-options.ts";
import { qualifiedName } from "../output/job-text.ts";
import { encodeMessage } from "../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";
import { checkTimeout, isTable, type OutputFormat, outputOption, timeoutOption } from "../shell/options.ts";

type SubmitOptions = {
  filename?: readonly string[];
  requestId?: string;
  ignoreForeign?: boolean;
  dryRun?: boolean;
  suspended?: boolean;
  strict?: boolean;
  wait?: boolean;
  timeout?: number;
  output: OutputFormat;
};

export function registerSubmit(registrar: Registrar): void {
  const command = registrar.program
    .command("submit")
    .aliases(["apply", "create"])
    .argument("[file...]", "files or folders, as for --filename")
    .summary("Submit jobs from manifests")
    .description(
      "Submit jobs from manifests of kubeflow.org/v1 (PyTorchJob, …), batch/v1 or gangway.dev/v1.\n" +
        "Submits nothing if one of the manifests cannot be read.",
    )
    .addOption(filenameOption())
    .option(
      "--request-id <id>",
      "submit only once: a repeated id returns the job that it created; several jobs use ID-1, ID-2, …",
    )
    .addOption(ignoreForeignOption())
    .option("--dry-run", "only check the manifests, create nothing")
    .option("--strict", "refuse manifests with members that are ignored, and jobs with warnings")
    .option("--wait", "print the progress of the jobs until all have ended; exit status 1 if one did not succeed")
    .addOption(new Option("--no-wait", "do not wait; this is the default").hideHelp())
    .addOption(timeoutOption())
    .addOption(outputOption())
    .option("--suspended", "create the jobs suspended; they wait once they are resumed");
  addSettingOptions(command, { heading: SETTINGS_HEADING });
  command.addHelpText(
    "after",
    examples(
      "gangway submit pytorch-simple.yaml",
      "gangway submit -f examples/ --wait --timeout 5m",
      "cat job.yaml | gangway submit -f - --dry-run --strict",
      "gangway submit -f job.yaml --request-id 2f1c0d --output json",
      "gangway submit pytorch-simple.yaml --queue nlp --priority 10 --gpu-model h100",
    ),
  );
  onRun<SubmitOptions>(registrar, command, async (run, args, options) => {
    const paths = [...args, ...(options.filename ?? [])];
    checkOptions(options);
    const settings = settingValues(options);
    const ready = await readReady(run, paths, { ...options, settings, otherwise: "nothing was submitted" });
    const { created, refused } = await submitAndPrint(run, ready, options);
    if (refused > 0) return EXIT.refused;
    if (options.wait !== true) return EXIT.ok;
    const report = isTable(options.output) ? run.deps.stdoutAsIs : run.deps.stderrAsIs;
    return waitForEnd(run, created, { timeoutMs: options.timeout ?? null, report: (line) => report(`${line}\n`) });
  });
}

function checkOptions(options: SubmitOptions): void {
  checkTimeout(options);
  if (options.dryRun === true && options.wait === true)
    throw usageFailure("--wait and --dry-run cannot be combined: a dry run has nothing to wait for");
}

/** Submits all manifests and prints each answer. Continues after a refused manifest. */
async function submitAndPrint(
  run: Run,
  ready: readonly ReadyManifest[],
  { requestId, dryRun = false, strict = false, output }: SubmitOptions,
): Promise<{ readonly created: readonly Job[]; readonly refused: number }> {
  const created: Job[] = [];
  let refused = 0;
  // Jobs of one command line often have the same warnings: each is printed once, after the answers.
  using notes = new GroupedNotes(run.deps.stderr);
  const view = isTable(output) || output === "name" ? JobView.BASIC : JobView.FULL;
  for await (const answer of submitJobs(run, ready, { requestId, dryRun, strict, view })) {
    const response = await acceptedResponse(run, answer);
    if (response === null) {
      refused += 1;
      continue;
    }
    const { where, spelled } = answer.manifest;
    for (const warning of response.warnings) notes.add(spelled(noteLine(where, warning)));
    run.deps.stdout(resultText(response, output));
    if (response.job === undefined) continue;
    printEnded(run, response.job, false);
    created.push(response.job);
  }
  return { created, refused };
}

/** The response to an accepted manifest. Null for a refused one, after printing why. */
async function acceptedResponse(run: Run, answer: SubmitAnswer): Promise<CreateJobResponse | null> {
  if (answer.kind === "accepted") return answer.response;
  const { manifest, lines, reason } = answer;
  const existing = reason === "JOB_NAME_TAKEN" ? await existingJob(run, manifest.job) : null;
  if (existing !== null && isPrintedFrom(existing, manifest.job)) {
    return create(CreateJobResponseSchema, { job: existing, outcome: CreateJobResponse_Outcome.UNCHANGED });
  }
  run.deps.stderr(`${manifest.where}:\n${manifest.spelled(lines.join("\n"))}\n`);
  const hint = existing === null ? null : labelHint(existing, manifest.job);
  if (hint !== null) run.deps.stderr(hint);
  else if (existing !== null) printEnded(run, existing, true);
  return null;
}

/** The command that makes the labels of a job those of a manifest. Null: more than labels differs. */
function labelHint(existing: Job, { metadata, spec }: Job): string | null {
  if (!isPrintedFrom(existing, { ...existing, spec } as Job)) return null;
  const [had, wanted] = [existing.metadata?.labels ?? {}, metadata?.labels ?? {}];
  const set = Object.entries(wanted).filter(([key, value]) => had[key] !== value);
  const removed = Object.keys(had).filter((key) => !(key in wanted));
  const changes = [...set.map(([key, value]) => `${key}=${value}`), ...removed.map((key) => `${key}-`)];
  if (changes.length === 0) return null;
  const flags = changes.map((change) => `--label ${change}`).join(" ");
  return `note: only its labels differ; "gangway update ${metadata?.name ?? ""} ${flags}" changes them\n`;
}

function printEnded(run: Run, job: Job, differs: boolean): void {
  const note = endedNote(run, job, differs);
  if (note !== null) run.deps.stderr(`${note}\n`);
}

function resultText(response: CreateJobResponse, output: OutputFormat): string {
  const name = response.job === undefined ? "job" : qualifiedName(response.job);
  if (output === "name") return `${name}\n`;
  if (output === "yaml") return `---\n${encodeMessage("yaml", CreateJobResponseSchema, response)}`;
  if (!isTable(output)) return encodeMessage(output, CreateJobResponseSchema, response);
  return `${name} ${outcomeWord(response.outcome)}\n`;
}

function outcomeWord(outcome: number): string {
  switch (outcome) {
    case CreateJobResponse_Outcome.CREATED:
      return "created";
    case CreateJobResponse_Outcome.REPLAYED:
      return "replayed";
    case CreateJobResponse_Outcome.UNCHANGED:
      return "unchanged";
    case CreateJobResponse_Outcome.VALID:
      return "valid";
    default:
      return `outcome ${outcome}`;
  }
}
