import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import {
  type CreateJobResponse,
  CreateJobResponse_Outcome,
  CreateJobResponseSchema,
  JobView,
} from "../../gen/gangway/v1/job_service_pb.ts";
import { CommandFailure, EXIT, usageFailure } from "../exit.ts";
import { submitJobs } from "../jobs/submit-jobs.ts";
import { waitForEnd } from "../jobs/wait-for-end.ts";
import { noteLine, type ReadyManifest, readManifests } from "../manifest/read-manifests.ts";
import { checkTimeout, type OutputFormat, outputOption, timeoutOption } from "../options.ts";
import { qualifiedName } from "../output/job-text.ts";
import { encodeMessage } from "../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../run-command.ts";

type SubmitOptions = {
  filename: readonly string[];
  namespace?: string;
  requestId?: string;
  dryRun?: boolean;
  strict?: boolean;
  wait?: boolean;
  timeout?: number;
  output: OutputFormat;
};

export function registerSubmit(registrar: Registrar): void {
  const command = registrar.program
    .command("submit")
    .summary("Submit jobs from manifests")
    .description(
      "Submit jobs from manifests of kubeflow.org/v1 (PyTorchJob, TFJob, MPIJob, …) or gangway.dev/v1.\n" +
        "Submits nothing if one of the manifests cannot be read.",
    )
    .requiredOption(
      "-f, --filename <path...>",
      "files, folders of *.yaml, *.yml and *.json files, or - for stdin; may be repeated",
    )
    .option("-n, --namespace <name>", "namespace for manifests that name none (default: default)")
    .option(
      "--request-id <id>",
      "submit only once: a repeated id returns the job that it created; several jobs use ID-1, ID-2, …",
    )
    .option("--dry-run", "only check the manifests, create nothing")
    .option("--strict", "refuse manifests with warnings, such as an unknown field in a template")
    .option("--wait", "print the progress of the jobs until all have ended; exit status 1 if one did not succeed")
    .addOption(timeoutOption())
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples(
        "gangway submit -f pytorch-simple.yaml",
        "gangway submit -f examples/ --wait --timeout 5m",
        "cat job.yaml | gangway submit -f - --dry-run --strict",
        "gangway submit -f job.yaml --request-id 2f1c0d --output json",
      ),
    );
  onRun<SubmitOptions>(registrar, command, async (run, _args, options) => {
    checkTimeout(options);
    if (options.dryRun === true && options.wait === true)
      throw usageFailure("--wait and --dry-run cannot be combined: a dry run has nothing to wait for");
    const { created, refused } = await submitAndPrint(run, await readAll(run, options), options);
    if (refused > 0) return EXIT.refused;
    if (options.wait !== true) return EXIT.ok;
    const report = options.output === "table" ? run.deps.stdout : run.deps.stderr;
    return waitForEnd(run, created, { timeoutMs: options.timeout ?? null, report: (line) => report(`${line}\n`) });
  });
}

/** Reads all manifests before the first is sent; throws with the errors of all of them. */
async function readAll(run: Run, options: SubmitOptions): Promise<readonly ReadyManifest[]> {
  const namespace = { name: options.namespace ?? "default", isExplicit: options.namespace !== undefined };
  const { ready, errors, warnings } = await readManifests(options.filename, {
    io: run.deps,
    kinds: run.deps.kinds,
    namespace,
  });
  for (const warning of warnings) run.deps.stderr(`warning: ${warning}\n`);
  if (errors.length > 0) {
    throw new CommandFailure(EXIT.refused, [...errors.map((error) => `error: ${error}`), "nothing was submitted"]);
  }
  if (ready.length === 0) throw usageFailure(`there is no manifest in ${options.filename.join(", ")}`);
  return ready;
}

/** Submits all manifests and prints each answer. Continues after a refused manifest. */
async function submitAndPrint(
  run: Run,
  ready: readonly ReadyManifest[],
  { requestId, dryRun = false, strict = false, output }: SubmitOptions,
): Promise<{ readonly created: readonly Job[]; readonly refused: number }> {
  const created: Job[] = [];
  let refused = 0;
  const view = output === "json" || output === "yaml" ? JobView.FULL : JobView.BASIC;
  for await (const answer of submitJobs(run, ready, { requestId, dryRun, strict, view })) {
    if (answer.kind === "refused") {
      run.deps.stderr(`${answer.where}:\n${answer.lines.join("\n")}\n`);
      refused += 1;
      continue;
    }
    for (const warning of answer.response.warnings) {
      run.deps.stderr(`warning: ${noteLine(answer.where, warning)}\n`);
    }
    run.deps.stdout(resultText(answer.response, output));
    if (answer.response.job !== undefined) created.push(answer.response.job);
  }
  return { created, refused };
}

function resultText(response: CreateJobResponse, output: OutputFormat): string {
  const name = response.job === undefined ? "job" : qualifiedName(response.job);
  if (output === "name") return `${name}\n`;
  if (output === "json") return encodeMessage("json", CreateJobResponseSchema, response);
  if (output === "yaml") return `---\n${encodeMessage("yaml", CreateJobResponseSchema, response)}`;
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
