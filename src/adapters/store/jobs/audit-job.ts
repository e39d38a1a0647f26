/** What the audit log has of changes of jobs. Templates, inputs and members of kinds may hold secrets: it has none. */
import type { AuditNote } from "../../../core/admin/audit.ts";
import type { Job } from "../../../core/job/job.ts";
import type { NewJob } from "../../../core/job/request/requests.ts";
import type { ServedCall } from "../../../runtime/served-call.ts";

export function createdNote({ job, call = null }: Pick<NewJob, "job" | "call">): AuditNote {
  const note = { timeMs: job.createTimeMs, action: "CreateJob", subject: nameOf(job) } as const;
  return { ...note, details: { after: settingsOf(job) }, ...(call === null ? {} : actorOf(call)) };
}

function actorOf({ subject: actor, method, peer, rpc, requestId }: ServedCall): Partial<AuditNote> {
  return { actor, method, peer, rpc, requestId };
}

/** The settings that an update changes, before it and after it. */
export function updatedNote(before: Job, after: Job, timeMs: number): AuditNote {
  const details = { before: settingsOf(before), after: settingsOf(after) };
  return { timeMs, action: "UpdateJob", subject: nameOf(after), details };
}

export function endedNote(
  job: Job,
  of: { readonly action: "CancelJob" | "DeleteJob"; readonly reason: string; readonly timeMs: number },
): AuditNote {
  return { ...of, subject: nameOf(job), details: { before: { uid: job.uid, phase: job.status.phase } } };
}

function nameOf({ namespace, name }: Job): string {
  return `${namespace}/${name}`;
}

function settingsOf({ uid, spec, labels, status }: Job): Readonly<Record<string, unknown>> {
  const { kind, priority, priorityClassName = null, replicaSpecs, runPolicy } = spec;
  const replicas = Object.fromEntries(Object.entries(replicaSpecs).map(([role, one]) => [role, one.replicas]));
  const { suspend = false, schedulingPolicy } = runPolicy;
  const setAside = status.setAside === undefined ? {} : { setAside: status.setAside.reason };
  const settings = { priority, priorityClassName, suspend, replicas, labels, ...setAside };
  return { uid, kind, queue: schedulingPolicy.queue, ...settings };
}
