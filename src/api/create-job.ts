import { status } from "@grpc/grpc-js";
import type { FieldNote, SentJob } from "../core/job/sent.ts";
import { type CreateJobRequest, CreateJobResponse_Outcome } from "../gen/gangway/v1/job_service_pb.ts";
import type { CallContext } from "./call.ts";
import { mergeNotes } from "./check-request.ts";
import { recordOf, toProtoJob, type View } from "./convert-job.ts";
import { sentJob } from "./convert-sent.ts";
import { errorInfo, retryInfo } from "./error-details.ts";
import type { JobIntake, SubmitOutcome, SubmitRequest } from "./ports.ts";
import { alreadyExists, invalidFields, notFound, RpcError } from "./rpc-error.ts";

const OUTCOME = {
  created: CreateJobResponse_Outcome.CREATED,
  replayed: CreateJobResponse_Outcome.REPLAYED,
  unchanged: CreateJobResponse_Outcome.UNCHANGED,
  valid: CreateJobResponse_Outcome.VALID,
} as const;

const RETRY_WHILE_DELETED_MS = 5000;

/** Makes a job durable. What breaks the proto's constraints and what intake finds wrong are answered together. */
export async function createJob(intake: JobIntake, request: CreateJobRequest, context: CallContext) {
  const checked = await checkSubmission(intake, request, context);
  return answer(await intake.submit(checked), checked.job, "FULL");
}

/** What a request asks intake for. Throws with all that is wrong where the proto's constraints are broken already. */
export async function checkSubmission(
  intake: JobIntake,
  request: CreateJobRequest,
  { violations, identity }: Pick<CallContext, "violations" | "identity">,
): Promise<SubmitRequest> {
  const sent = request.job === undefined ? null : sentJob(request.job);
  const { requestId, strict, validateOnly } = request;
  if (sent !== null && violations.length === 0) {
    return { job: sent, requestId, validateOnly, strict, createdBy: identity };
  }
  const more = sent === null ? [] : await intake.check(sent);
  throw invalidFields(mergeNotes(more, violations));
}

/** How a submission ended; throws where it was refused. */
export function answer(outcome: SubmitOutcome, sent: SentJob, view: View) {
  const name = `${sent.namespace}/${sent.name || `${sent.generateName}*`}`;
  switch (outcome.kind) {
    case "created":
    case "replayed":
    case "unchanged":
    case "valid":
      return {
        job: toProtoJob(recordOf(outcome.job), view),
        outcome: OUTCOME[outcome.kind],
        warnings: outcome.warnings.map(({ field, message }: FieldNote) => ({ field, message })),
      };
    case "invalid":
      // What would be a warning may well be why: `contianers` beside "must have at least one container".
      throw invalidFields(mergeNotes(outcome.violations, outcome.warnings));
    case "unknownNamespace":
      throw notFound({ type: "namespace", name: outcome.namespace });
    case "nameTaken":
      throw alreadyExists("JOB_NAME_TAKEN", `job ${name} exists and differs: ${outcome.difference}`);
    case "requestIdReused":
      throw alreadyExists("REQUEST_ID_REUSED", `the request id was used for a job that differs: ${outcome.difference}`);
    case "madeAndDeleted":
      throw alreadyExists("JOB_MADE_AND_DELETED", `the request id made job ${outcome.uid}, which was deleted since`);
    case "beingDeleted":
      throw new RpcError(status.ALREADY_EXISTS, `job ${name} is still being deleted`, [
        errorInfo("JOB_BEING_DELETED"),
        retryInfo(RETRY_WHILE_DELETED_MS),
      ]);
  }
}
