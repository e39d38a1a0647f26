import { status } from "@grpc/grpc-js";
import type { JobView } from "../../core/job/request/list.ts";
import type { QueueAccess, Submission, SubmitOutcome } from "../../core/job/request/requests.ts";
import type { FieldNote, SentJob } from "../../core/job/request/sent.ts";
import type { Registry } from "../../core/kinds/registry.ts";
import type { FindRuntime } from "../../core/kinds/trainjob/training-runtime.ts";
import { type CreateJobRequest, CreateJobResponse_Outcome } from "../../gen/gangway/v1/job_service_pb.ts";
import type { ForeseeJob, JobIntake } from "../ports.ts";
import { noRoomFor } from "../rpc/admin-outcome.ts";
import type { CallContext } from "../rpc/call.ts";
import { type CallAccess, namespacePlace } from "../rpc/call-access.ts";
import { mergeNotes } from "../rpc/check-request.ts";
import { errorInfo, retryInfo } from "../rpc/error-details.ts";
import { alreadyExists, invalidFields, notFound, RpcError } from "../rpc/rpc-error.ts";
import { type KindNames, recordOf, toProtoJob } from "./convert-job.ts";
import { sentJob } from "./convert-sent.ts";
import { foreseer } from "./foresee-job.ts";
import { maySeeClusters, sightOf, withoutOthers } from "./hide-others.ts";
import { noRoomError } from "./no-room.ts";
import { type RequestedJob, requestedJob } from "./request-manifest.ts";
import { RequestRuntimes } from "./request-runtimes.ts";

const OUTCOME = {
  created: CreateJobResponse_Outcome.CREATED,
  replayed: CreateJobResponse_Outcome.REPLAYED,
  unchanged: CreateJobResponse_Outcome.UNCHANGED,
  valid: CreateJobResponse_Outcome.VALID,
} as const;

const RETRY_WHILE_DELETED_MS = 5000;

/** Takes jobs, and tells of each one whether it can ever run. */
export type SubmitPorts = {
  readonly intake: JobIntake;
  readonly foresee: ForeseeJob;
  readonly kinds: Registry;
  readonly findRuntime: FindRuntime;
};

/** Creates a job. Reports broken constraints of the proto together with the errors that intake finds. */
export async function createJob(
  { intake, foresee, kinds, findRuntime }: SubmitPorts,
  request: CreateJobRequest,
  context: CallContext,
): Promise<ReturnType<typeof toResponse>> {
  const runtimeOf = await new RequestRuntimes(findRuntime).of(request);
  const asked = requestedJob(request, { ...context, strict: request.strict, kinds, runtimeOf });
  const made = await checkSubmission(intake, { ...request, asked }, context);
  const checked = { ...made, foresee: foreseer(foresee, { ...context, strict: request.strict }) };
  const shown = { sent: checked.job, view: "FULL", access: context.access, kinds } as const;
  return toResponse(asInRequest(await intake.submit(checked), asked), shown);
}

/** An outcome whose fields are named as the request has them, with what was found in its manifest. */
export function asInRequest(outcome: SubmitOutcome, { named, warnings }: RequestedJob): SubmitOutcome {
  if (outcome.kind === "invalid") {
    return { ...outcome, violations: outcome.violations.map(named), warnings: outcome.warnings.map(named) };
  }
  return "job" in outcome ? { ...outcome, warnings: [...warnings, ...outcome.warnings.map(named)] } : outcome;
}

/**
 * Returns the submission of a request. Throws INVALID_ARGUMENT with all errors if the proto's constraints are broken.
 */
export async function checkSubmission(
  intake: JobIntake,
  request: Pick<CreateJobRequest, "requestId" | "strict" | "validateOnly"> & { readonly asked: RequestedJob },
  { identity, access }: Pick<CallContext, "identity" | "access">,
): Promise<Submission> {
  const { requestId, strict, validateOnly, asked } = request;
  const { violations } = asked;
  const sent = asked.job === undefined ? null : sentJob(asked.job);
  const seesCluster = maySeeClusters(access, []) ?? undefined;
  const queueAccess = access.enforced ? { queueAccess: queueAccessOf(access) } : {};
  const clusterAccess = seesCluster === undefined ? {} : { seesCluster };
  if (sent !== null && violations.length === 0) {
    return {
      job: sent,
      requestId,
      validateOnly,
      strict,
      createdBy: identity.subject,
      ...queueAccess,
      ...clusterAccess,
    };
  }
  const more = sent === null ? [] : (await intake.check({ job: sent, ...queueAccess })).map(asked.named);
  // With `strict`, warnings are errors.
  const isError = ({ isWarning }: FieldNote) => strict || isWarning !== true;
  const errors = more.filter(isError).map(({ isWarning: _, ...note }) => note);
  const warnings = more.filter((note) => !isError(note));
  // A warning must not take the place of an error about the same field.
  throw invalidFields(mergeNotes(mergeNotes(errors, violations), warnings));
}

function queueAccessOf(access: CallAccess): QueueAccess {
  return (name) => {
    const queue = { kind: "queue", name } as const;
    if (access.may("queues.use", queue)) return "use";
    return access.may("queues.get", queue) ? "see" : "hidden";
  };
}

function asWarning(note: FieldNote): FieldNote {
  return { ...note, isWarning: true };
}

/** Converts the outcome of a submission to a response. Throws if the submission was refused. */
export function toResponse(
  outcome: SubmitOutcome,
  {
    sent,
    view,
    access,
    kinds,
  }: { readonly sent: SentJob; readonly view: JobView; readonly access: CallAccess; readonly kinds: KindNames },
) {
  if (!("job" in outcome)) throw refusedSubmission(outcome, sent, access);
  return {
    job: toProtoJob(recordOf(withoutOthers(outcome.job, sightOf(access))), { view, kinds }),
    outcome: OUTCOME[outcome.kind],
    warnings: outcome.warnings.map(toProtoWarning),
  };
}

export function toProtoWarning({ field, message }: FieldNote): { readonly field: string; readonly message: string } {
  return { field, message };
}

/** What differs from the existing job. It has values of that job's templates, so not everyone hears of it. */
function differenceTo(
  access: CallAccess,
  { namespace }: Pick<SentJob, "namespace">,
  { difference }: { readonly difference: string },
): string {
  const place = namespacePlace(namespace);
  return access.may("jobs.get", place) && access.may("jobs.secrets", place) ? `: ${difference}` : "";
}

/** The error for a submission that was refused. */
export function refusedSubmission(
  outcome: Exclude<SubmitOutcome, { readonly kind: keyof typeof OUTCOME }>,
  sent: SentJob,
  access: CallAccess,
): RpcError {
  const name = `${sent.namespace}/${sent.name || `${sent.generateName}*`}`;
  switch (outcome.kind) {
    case "invalid":
      // A warning is often the cause: `contianers` is unknown, and so "must have at least one container".
      return invalidFields(mergeNotes(outcome.violations, outcome.warnings.map(asWarning)));
    case "deniedQueue":
      return access.denial("queues.use", { kind: "queue", name: outcome.queue });
    case "unknownNamespace":
      return notFound({ type: "namespace", name: outcome.namespace });
    case "tooManyNamespaces":
      return noRoomFor({ type: "namespace", name: sent.namespace }, outcome.max);
    case "noRoom":
      return noRoomError(outcome);
    case "nameTaken":
      return alreadyExists("JOB_NAME_TAKEN", `job ${name} exists and differs${differenceTo(access, sent, outcome)}`);
    case "requestIdReused":
      return alreadyExists(
        "REQUEST_ID_REUSED",
        `the request id was already used for a job that differs${differenceTo(access, sent, outcome)}`,
      );
    case "madeAndDeleted":
      return alreadyExists(
        "JOB_MADE_AND_DELETED",
        `the request id created job ${outcome.uid}, which has been deleted since`,
      );
    case "beingDeleted":
      return new RpcError(status.ALREADY_EXISTS, `job ${name} is still being deleted`, [
        errorInfo("JOB_BEING_DELETED"),
        retryInfo(RETRY_WHILE_DELETED_MS),
      ]);
  }
}
