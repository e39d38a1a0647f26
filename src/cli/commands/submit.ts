import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import {
  type CreateJobResponse,
  CreateJobResponse_Outcome,
  CreateJobResponseSchema,
  JobService,
} from "../../gen/gangway/v1/job_service_pb.ts";
import { awaitJobs } from "../await-jobs.ts";
import { CommandFailure, EXIT, usageFailure } from "../exit.ts";
import { qualifiedName } from "../job-text.ts";
import { noteLine, type ReadyJob, readManifests } from "../manifest/read-manifests.ts";
import { encodeMessage } from "../output.ts";
import { isServiceError, rpcFailure } from "../rpc-failure.ts";
import { examples, type OutputFormat, onRun, outputOption, type Registrar, type Run, timeoutOption } from "../shell.ts";

type Options = {
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
    .description("submit jobs: manifests of kubeflow.org/v1 (PyTorchJob, TFJob) as they are, or of gangway.dev/v1")
    .requiredOption(
      "-f, --filename <path...>",
      "files, folders of *.yaml, *.yml and *.json, or - for stdin; may be repeated",
    )
    .option("-n, --namespace <name>", "of manifests that name none (default: default)")
    .option(
      "--request-id <id>",
      "submit exactly once: the same id answers with the job that it made; several jobs get ID-1, ID-2, …",
    )
    .option("--dry-run", "only check, change nothing")
    .option("--strict", "refuse what would else be a warning, such as an unknown field in a template")
    .option("--wait", "show progress and wait until every job has ended")
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
  onRun<Options>(registrar, command, async (run, _args, options) => {
    if (options.dryRun === true && options.wait === true)
      throw usageFailure("--wait has nothing to wait for after --dry-run");
    const ready = await readAll(run, options);
    const { created, refused } = await submitAll(run, ready, options);
    if (refused > 0) return EXIT.refused;
    if (options.wait !== true) return EXIT.ok;
    const report = options.output === "table" ? run.deps.stdout : run.deps.stderr;
    return awaitJobs(run, created, { timeoutMs: options.timeout ?? null, report: (line) => report(`${line}\n`) });
  });
}

/** Every manifest, before the first is sent; throws with everything that is wrong with any. */
async function readAll(run: Run, options: Options): Promise<readonly ReadyJob[]> {
  const namespace = { name: options.namespace ?? "default", isExplicit: options.namespace !== undefined };
  const { ready, errors, warnings } = await readManifests(options.filename, { io: run.deps, namespace });
  for (const warning of warnings) run.deps.stderr(`warning: ${warning}\n`);
  if (errors.length > 0) {
    throw new CommandFailure(EXIT.refused, [...errors.map((error) => `error: ${error}`), "nothing was submitted"]);
  }
  if (ready.length === 0) throw usageFailure(`there is no manifest in ${options.filename.join(", ")}`);
  return ready;
}

/** Sends one after the other. A refused one is reported and the next is sent; a service that is away ends it. */
async function submitAll(
  run: Run,
  ready: readonly ReadyJob[],
  options: Options,
): Promise<{ readonly created: readonly Job[]; readonly refused: number }> {
  const created: Job[] = [];
  let refused = 0;
  for (const [at, one] of ready.entries()) {
    const requestId = requestIdOf(options.requestId, { at, of: ready.length });
    const answer = await submitOne(run, one.job, { options, requestId });
    if (answer.kind === "refused") {
      run.deps.stderr(`${one.where}:\n${answer.lines.join("\n")}\n`);
      refused += 1;
      continue;
    }
    for (const warning of answer.response.warnings) run.deps.stderr(`warning: ${noteLine(one.where, warning)}\n`);
    run.deps.stdout(resultText(answer.response, options.output));
    if (answer.response.job !== undefined) created.push(answer.response.job);
  }
  return { created, refused };
}

type Answer =
  | { readonly kind: "accepted"; readonly response: CreateJobResponse }
  | { readonly kind: "refused"; readonly lines: readonly string[] };

/** Throws where the service is away. */
async function submitOne(
  run: Run,
  job: Job,
  { options, requestId }: { readonly options: Options; readonly requestId: string },
): Promise<Answer> {
  const { dryRun: validateOnly = false, strict = false } = options;
  try {
    const request = { job, requestId, validateOnly, strict };
    return { kind: "accepted", response: await run.client.call(JobService.method.createJob, request) };
  } catch (error) {
    if (!isServiceError(error)) throw error;
    const failure = rpcFailure(error, run.client.address);
    if (failure.exitCode !== EXIT.refused) throw failure;
    return { kind: "refused", lines: failure.lines };
  }
}

function requestIdOf(given: string | undefined, position: { readonly at: number; readonly of: number }): string {
  if (given === undefined) return "";
  return position.of === 1 ? given : `${given}-${position.at + 1}`;
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
