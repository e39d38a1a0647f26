import type { Job } from "../core/job/job.ts";
import { isTerminal } from "../core/job/status.ts";
import type { LogReplica } from "./log-replicas.ts";
import type { ContainerForLog, LogFailure } from "./ports.ts";
import { failedPrecondition, invalidFields, type RpcError, unavailable } from "./rpc-error.ts";

function subjectOf(job: Job, replica: LogReplica): string {
  return `replica ${job.namespace}/${job.name}/${replica.key}`;
}

/** There is no pod: it has none yet, or it went. */
export function noPod(job: Job, replica: LogReplica): RpcError {
  const subject = subjectOf(job, replica);
  if (isTerminal(job.status)) {
    const description = `has no pod any more: the job is ${job.status.phase}, and its clean-pod policy removed it`;
    return failedPrecondition({ type: "PODS_GONE", subject, description });
  }
  const waiting = job.status.waiting;
  const why = waiting === null ? `the job is ${job.status.phase}` : `${waiting.reason}: ${waiting.message}`;
  return failedPrecondition({ type: "NOT_STARTED", subject, description: `has no pod yet: ${why}` });
}

export function notStarted(job: Job, replica: LogReplica, { name, reason }: ContainerForLog): RpcError {
  const description = `has not started its container ${name} yet: ${reason}`;
  return failedPrecondition({ type: "NOT_STARTED", subject: subjectOf(job, replica), description });
}

export function noSuchContainer(replica: LogReplica, containers: readonly ContainerForLog[]): RpcError {
  const names = containers.map(({ name }) => name).join(", ");
  const message = `${replica.key} has no container ${replica.container}; it has ${names}`;
  return invalidFields([{ field: "container", message }]);
}

/** What a cluster answered instead of a log. */
export function logFailure(job: Job, replica: LogReplica, failure: LogFailure): RpcError {
  const { status, reason, message } = failure;
  if (isTransient(failure)) return unavailable("CLUSTER_UNAVAILABLE", `the log of ${replica.key} is away: ${message}`);
  const type = status === 400 || status === 404 ? "NO_LOG" : "CLUSTER_REFUSED";
  return failedPrecondition({
    type,
    subject: subjectOf(job, replica),
    description: `has no log: ${reason}: ${message}`,
  });
}

/** Asking again later may succeed. */
export function isTransient({ status }: LogFailure): boolean {
  return status === 0 || status === 429 || status >= 500;
}
