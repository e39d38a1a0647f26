import { create, toBinary } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import {
  type CreateJobRequest,
  CreateJobRequestSchema,
  type CreateJobResponse,
  JobService,
  type JobView,
} from "../../gen/gangway/v1/job_service_pb.ts";
import type { ReadyManifest } from "../manifest/read-manifests.ts";
import { CallError } from "../rpc/call-error.ts";
import { detailsOf, reasonOf, rpcFailure, statusFailure } from "../rpc/rpc-failure.ts";
import type { Run } from "../run/run-command.ts";
import { type CommandFailure, EXIT } from "../shell/exit.ts";

/** The service's answer to one manifest. */
export type SubmitAnswer = { readonly manifest: ReadyManifest } & SubmitOutcome;

type SubmitOutcome =
  | { readonly kind: "accepted"; readonly response: CreateJobResponse }
  /** `reason` is that of the service in capitals, such as JOB_NAME_TAKEN. */
  | { readonly kind: "refused"; readonly reason: string; readonly lines: readonly string[] };

type SubmitJobsOptions = {
  readonly requestId: string | undefined;
  readonly dryRun: boolean;
  readonly strict: boolean;
  /** Which fields of the created jobs the answers carry. */
  readonly view: JobView;
};

/** The API accepts this many jobs in a batch. */
const BATCH_MAX = 1000;
/** Less than the 16 MiB that a call may have: the framing of the messages adds to it. */
const BATCH_BYTES_MAX = 12 * 1024 * 1024;

/** Sends manifests in batches, and yields the answers in their order. Throws if the service is unavailable. */
export async function* submitJobs(
  run: Run,
  ready: readonly ReadyManifest[],
  options: SubmitJobsOptions,
): AsyncGenerator<SubmitAnswer> {
  const requests = ready.map(({ job }, at) => {
    const requestId = requestIdOf(options.requestId, { at, total: ready.length });
    return create(CreateJobRequestSchema, { job, requestId, validateOnly: options.dryRun, strict: options.strict });
  });
  let at = 0;
  for (const batch of batchesOf(requests)) {
    for await (const outcome of submitBatch(run, batch, options.view)) {
      const manifest = ready[at];
      at += 1;
      if (manifest !== undefined) yield { manifest, ...outcome };
    }
  }
}

function requestIdOf(id: string | undefined, position: { readonly at: number; readonly total: number }): string {
  if (id === undefined) return "";
  return position.total === 1 ? id : `${id}-${position.at + 1}`;
}

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

async function* submitBatch(
  run: Run,
  batch: readonly CreateJobRequest[],
  view: JobView,
): AsyncGenerator<SubmitOutcome> {
  const [only, ...more] = batch;
  if (only !== undefined && more.length === 0) {
    yield await submitOne(run, only);
    return;
  }
  const { results } = await run.client.call(JobService.method.batchCreateJobs, { requests: [...batch], view });
  for (const { result } of results) {
    if (result.case === "response") yield { kind: "accepted", response: result.value };
    else if (result.value !== undefined) yield refusalOf(statusFailure(result.value), result.value.details);
  }
}

async function submitOne(run: Run, request: CreateJobRequest): Promise<SubmitOutcome> {
  try {
    return { kind: "accepted", response: await run.client.call(JobService.method.createJob, request) };
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    return refusalOf(rpcFailure(error, run.client.address), detailsOf(error));
  }
}

/** Throws a failure that is not about this job, such as an unavailable service. */
function refusalOf(failure: CommandFailure, details: readonly Any[]): SubmitOutcome {
  if (failure.exitCode !== EXIT.refused) throw failure;
  return { kind: "refused", reason: reasonOf(details), lines: failure.lines };
}
