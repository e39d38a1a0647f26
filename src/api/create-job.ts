import { status } from "@grpc/grpc-js";
import type { FieldNote, SentJob } from "../core/job/sent.ts";
import { type CreateJobRequest, CreateJobResponse_Outcome } from "../gen/gangway/v1/job_service_pb.ts";
import type { CallContext } from "./call.ts";
import { mergeNotes } from "./check-request.ts";
import { recordOf, toProtoJob } from "./convert-job.ts";
import { sentJob } from "./convert-sent.ts";
import { errorInfo, retryInfo } from "./error-details.ts";
import type { JobIntake, SubmitOutcome } from "./ports.ts";
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
  const sent = request.job === undefined ? null : sentJob(request.job);
  const { requestId, strict } = request;
  if (sent === null || context.violations.length > 0) {
    const violations = sent === null ? [] : await intake.check(sent);
    throw invalidFields(mergeNotes(violations, context.violations));
  }
  const { validateOnly } = request;
  return answer(await intake.submit({ job: sent, requestId, validateOnly, strict, createdBy: context.identity }), sent);
}

function answer(outcome: SubmitOutcome, sent: SentJob) {
  const name = `${sent.namespace}/${sent.name || `${sent.generateName}*`}`;
  switch (outcome.kind) {
    case "created":
    case "replayed":
    case "unchanged":
    case "valid":
      return {
        job: toProtoJob(recordOf(outcome.job), "FULL"),
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
