import { create, toBinary } from "@bufbuild/protobuf";
import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import {
  type CreateJobRequest,
  CreateJobRequestSchema,
  type CreateJobResponse,
  CreateJobResponse_Outcome,
  CreateJobResponseSchema,
  JobService,
  JobView,
} from "../../gen/gangway/v1/job_service_pb.ts";
import { awaitJobs } from "../await-jobs.ts";
import { CommandFailure, EXIT, usageFailure } from "../exit.ts";
import { qualifiedName } from "../job-text.ts";
import { noteLine, type ReadyJob, readManifests } from "../manifest/read-manifests.ts";
import { encodeMessage } from "../output.ts";
import { isServiceError, rpcFailure, statusFailure } from "../rpc-failure.ts";
import {
  checkTimeout,
  examples,
  type OutputFormat,
  onRun,
  outputOption,
  type Registrar,
  type Run,
  timeoutOption,
} from "../shell.ts";

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
    .description(
      "submit jobs: manifests of kubeflow.org/v1 (PyTorchJob, TFJob, MPIJob, …) as they are, or of gangway.dev/v1",
    )
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
    checkTimeout(options);
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

/** Sends all, in batches if there are several. A refused one is reported and the next follows; a service that is away ends it. */
async function submitAll(
  run: Run,
  ready: readonly ReadyJob[],
  options: Options,
): Promise<{ readonly created: readonly Job[]; readonly refused: number }> {
  const created: Job[] = [];
  let refused = 0;
  for await (const { where, answer } of answersOf(run, ready, options)) {
    if (answer.kind === "refused") {
      run.deps.stderr(`${where}:\n${answer.lines.join("\n")}\n`);
      refused += 1;
      continue;
    }
    for (const warning of answer.response.warnings) run.deps.stderr(`warning: ${noteLine(where, warning)}\n`);
    run.deps.stdout(resultText(answer.response, options.output));
    if (answer.response.job !== undefined) created.push(answer.response.job);
  }
  return { created, refused };
}

/** The answer to each manifest, in their order. */
async function* answersOf(
  run: Run,
  ready: readonly ReadyJob[],
  options: Options,
): AsyncGenerator<{ readonly where: string; readonly answer: Answer }> {
  const { dryRun: validateOnly = false, strict = false } = options;
  const requests = ready.map(({ job }, at) => {
    const requestId = requestIdOf(options.requestId, { at, of: ready.length });
    return create(CreateJobRequestSchema, { job, requestId, validateOnly, strict });
  });
  const places = ready.values();
  for (const batch of batchesOf(requests)) {
    for await (const answer of submitBatch(run, batch, options))
      yield { where: places.next().value?.where ?? "", answer };
  }
}

const BATCH_MAX = 1000;
/** Less than the 16 MiB that a call may have: what frames the messages comes on top. */
const BATCH_BYTES_MAX = 12 * 1024 * 1024;

function batchesOf(requests: readonly CreateJobRequest[]): readonly (readonly CreateJobRequest[])[] {
  const batches: CreateJobRequest[][] = [];
  let bytes = 0;
  for (const request of requests) {
    const size = toBinary(CreateJobRequestSchema, request).length;
    const batch = batches.at(-1);
    bytes += size;
    if (batch !== undefined && batch.length < BATCH_MAX && bytes <= BATCH_BYTES_MAX) batch.push(request);
    else {
      batches.push([request]);
      bytes = size;
    }
  }
  return batches;
}

type Answer =
  | { readonly kind: "accepted"; readonly response: CreateJobResponse }
  | { readonly kind: "refused"; readonly lines: readonly string[] };

async function* submitBatch(run: Run, batch: readonly CreateJobRequest[], options: Options): AsyncGenerator<Answer> {
  const [only, ...more] = batch;
  if (only !== undefined && more.length === 0) {
    yield await submitOne(run, only);
    return;
  }
  const view = options.output === "json" || options.output === "yaml" ? JobView.FULL : JobView.BASIC;
  const { results } = await run.client.call(JobService.method.batchCreateJobs, { requests: [...batch], view });
  for (const { result } of results) {
    if (result.case === "response") yield { kind: "accepted", response: result.value };
    else if (result.value !== undefined) yield refusal(statusFailure(result.value));
  }
}

/** Throws where the service is away. */
async function submitOne(run: Run, request: CreateJobRequest): Promise<Answer> {
  try {
    return { kind: "accepted", response: await run.client.call(JobService.method.createJob, request) };
  } catch (error) {
    if (!isServiceError(error)) throw error;
    return refusal(rpcFailure(error, run.client.address));
  }
}

/** Throws what is no answer to this one job. */
function refusal(failure: CommandFailure): Answer {
  if (failure.exitCode !== EXIT.refused) throw failure;
  return { kind: "refused", lines: failure.lines };
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
