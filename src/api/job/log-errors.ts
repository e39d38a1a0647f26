import type { ContainerForLog, LogFailure } from "../../core/job/container-log.ts";
import type { Job } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/status.ts";
import { failedPrecondition, invalidFields, type RpcError, unavailable } from "../rpc/rpc-error.ts";
import type { LogReplica } from "./log-replicas.ts";

function subjectOf(job: Job, replica: LogReplica): string {
  return `replica ${job.namespace}/${job.name}/${replica.key}`;
}

/** The replica has no pod yet, or its pod was removed. */
export function noPod(job: Job, replica: LogReplica): RpcError {
  const subject = subjectOf(job, replica);
  if (isTerminal(job.status)) {
    const description = `has no pod: the job is ${job.status.phase}, and its clean-pod policy has removed the pod`;
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
  const message = `${replica.key} has no container ${replica.container}; its containers are ${names}`;
  return invalidFields([{ field: "container", message }]);
}

/** Converts the answer of a cluster that did not return a log. */
export function logFailure(job: Job, replica: LogReplica, failure: LogFailure): RpcError {
  const { status, reason, message } = failure;
  if (isTransient(failure))
    return unavailable("CLUSTER_UNAVAILABLE", `the cluster does not return the log of ${replica.key}: ${message}`);
  const type = status === 400 || status === 404 ? "NO_LOG" : "CLUSTER_REFUSED";
  return failedPrecondition({
    type,
    subject: subjectOf(job, replica),
    description: `has no log: ${reason}: ${message}`,
  });
}

/** True if the same call may succeed later. */
export function isTransient({ status }: LogFailure): boolean {
  return status === 0 || status === 429 || status >= 500;
}
