import type { MessageInitShape } from "@bufbuild/protobuf";
import type { JobView as View } from "../../core/job/request/list.ts";
import type { ForeseenSubmission } from "../../core/plan/model/simulation.ts";
import {
  type BatchCreateJobsRequest,
  type BatchCreateJobsResultSchema,
  type CreateJobRequest,
  CreateJobRequestSchema,
  JobView,
} from "../../gen/gangway/v1/job_service_pb.ts";
import { invariant } from "../../runtime/assert.ts";
import { mapInTurns } from "../../runtime/map-in-turns.ts";
import type { CallContext } from "../rpc/call.ts";
import { checkRequest } from "../rpc/check-request.ts";
import { invalidFields, type OnInternalError, statusMessageOf } from "../rpc/rpc-error.ts";
import { asInRequest, checkSubmission, type SubmitPorts, toResponse } from "./create-job.ts";
import { foreseer } from "./foresee-job.ts";
import { type RequestedJob, requestedJob } from "./request-manifest.ts";
import { RequestRuntimes } from "./request-runtimes.ts";

type Result = MessageInitShape<typeof BatchCreateJobsResultSchema>;
type CheckedRequest =
  | { readonly kind: "ok"; readonly submission: ForeseenSubmission; readonly asked: RequestedJob }
  | { readonly kind: "refused"; readonly cause: unknown };

/** A job with many mistakes takes milliseconds to check. After so many jobs, other calls get a turn. */
const CHECKED_IN_A_TURN = 20;

/** Creates many jobs, each independent of the others. Answers in the order of the requests. */
export async function batchCreateJobs(
  { onInternalError, ...ports }: SubmitPorts & { readonly onInternalError: OnInternalError },
  batch: BatchCreateJobsRequest,
  context: CallContext,
): Promise<{ results: Result[] }> {
  const { requests, view } = batch;
  const { intake, kinds } = ports;
  const runtimes = new RequestRuntimes(ports.findRuntime);
  const checked = await mapInTurns(requests, CHECKED_IN_A_TURN, (request, at) =>
    check(ports, { request, batch, at, runtimes }, context),
  );
  const submissions = checked.flatMap((one) => (one.kind === "ok" ? [one.submission] : []));
  const outcomes = (await intake.submitAll(submissions)).values();
  const shown: View = view === JobView.FULL ? "FULL" : "BASIC";
  const results = checked.map((one): Result => {
    try {
      if (one.kind === "refused") throw one.cause;
      const { value: outcome } = outcomes.next();
      invariant(outcome !== undefined, "intake answers every submission");
      if (outcome.kind === "failed") throw outcome.error;
      return {
        result: {
          case: "response",
          value: toResponse(asInRequest(outcome, one.asked), {
            sent: one.submission.job,
            view: shown,
            access: context.access,
            kinds,
          }),
        },
      };
    } catch (cause) {
      return { result: { case: "error", value: statusMessageOf(cause, onInternalError) } };
    }
  });
  return { results };
}

async function check(
  { intake, foresee, kinds }: SubmitPorts,
  {
    request,
    batch,
    at,
    runtimes,
  }: {
    readonly request: CreateJobRequest;
    readonly batch: BatchCreateJobsRequest;
    readonly at: number;
    readonly runtimes: RequestRuntimes;
  },
  context: CallContext,
): Promise<CheckedRequest> {
  try {
    const { access, passedItems } = context;
    const passed = passedItems?.get(at);
    if (passed !== undefined) throw invalidFields([passed]);
    access.checkItem(request, batch);
    const violations = checkRequest(CreateJobRequestSchema, request);
    const runtimeOf = await runtimes.of(request);
    const asked = requestedJob(request, { violations, strict: request.strict, kinds, runtimeOf });
    const submission = await checkSubmission(intake, { ...request, asked }, context);
    return {
      kind: "ok",
      asked,
      submission: { ...submission, foresee: foreseer(foresee, { ...context, strict: request.strict }) },
    };
  } catch (cause) {
    return { kind: "refused", cause };
  }
}
