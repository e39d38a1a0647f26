import type { CancelJobRequest, DeleteJobRequest } from "../gen/gangway/v1/job_service_pb.ts";
import { recordOf, toProtoJob } from "./convert-job.ts";
import { namespaceOf } from "./convert-sent.ts";
import type { JobIntake } from "./ports.ts";
import { failedPrecondition, notFound } from "./rpc-error.ts";

/** Ends a job; ending it twice answers alike, ending one that ended by itself is refused. */
export async function cancelJob(intake: JobIntake, request: CancelJobRequest) {
  const which = { namespace: namespaceOf(request), name: request.name };
  const outcome = await intake.cancel(which, request.reason);
  const name = `${which.namespace}/${which.name}`;
  if (outcome.kind === "notFound") throw notFound({ type: "job", name });
  if (outcome.kind === "terminal") {
    const description = `ended before: it is ${outcome.job.status.phase}`;
    throw failedPrecondition({ type: "JOB_TERMINAL", subject: `job ${name}`, description });
  }
  return { job: toProtoJob(recordOf(outcome.job), "BASIC") };
}

export async function deleteJob(intake: JobIntake, request: DeleteJobRequest) {
  const which = { namespace: namespaceOf(request), name: request.name };
  const outcome = await intake.remove(which);
  if (outcome.kind === "notFound") throw notFound({ type: "job", name: `${which.namespace}/${which.name}` });
  return { job: toProtoJob(recordOf(outcome.job), "BASIC") };
}
