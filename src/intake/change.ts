import type { Job } from "../core/job/job.ts";
import { QUEUE_LABEL } from "../core/job/labels.ts";
import type { EndOutcome, JobName, UpdateOutcome } from "../core/job/requests.ts";
import type { FieldNote } from "../core/job/sent.ts";
import { changeJob, type WantedChange } from "../core/kinds/change-job.ts";
import { kindOfJob } from "../core/kinds/registry.ts";
import { checkLabels } from "./check-metadata.ts";
import { checkPodNames, toNote } from "./check-spec.ts";
import type { IntakePorts } from "./ports.ts";
import { requestPath } from "./request-path.ts";

/** Changes the mutable fields of a job, and wakes its worker and the planner. */
export async function change(ports: IntakePorts, name: JobName, wanted: WantedChange): Promise<UpdateOutcome> {
  const nowMs = ports.clock.nowMs();
  const outcome = await ports.store.changeJob(name, (job) => decide(ports, { job, wanted, nowMs }), nowMs);
  if (outcome.kind === "changed") {
    ports.wakeJob(outcome.job.uid);
    ports.wakePlanner();
  }
  return outcome;
}

function decide(
  { kinds }: Pick<IntakePorts, "kinds">,
  { job, wanted, nowMs }: { readonly job: Job; readonly wanted: WantedChange; readonly nowMs: number },
): Exclude<UpdateOutcome, { readonly kind: "notFound" }> {
  const kind = kindOfJob(kinds, job);
  const decided = changeJob(job, kind, wanted, nowMs);
  const labels = wanted.labels === undefined ? [] : labelNotes(job, wanted.labels);
  if (decided.kind === "invalid") {
    const sent = { replicaSpecs: { ...job.spec.replicaSpecs, ...wanted.replicas } };
    return { kind: "invalid", violations: [...labels, ...decided.errors.map((error) => toNote(error, sent))] };
  }
  if (decided.kind !== "changed") return decided;
  const violations = [...labels, ...nameNotes(decided.job)];
  return violations.length > 0 ? { kind: "invalid", violations } : decided;
}

/** Refuses a new queue label: the queue of a job is fixed when it is created, so the label would mislead. */
function labelNotes(job: Job, labels: Job["labels"]): readonly FieldNote[] {
  const moved = (labels[QUEUE_LABEL] ?? "") !== (job.labels[QUEUE_LABEL] ?? "");
  const message = "must stay: it names the queue of the job, which cannot change";
  return [...checkLabels({ labels }), ...(moved ? [{ field: requestPath(["labels", QUEUE_LABEL]), message }] : [])];
}

function nameNotes({ name, spec }: Job): readonly FieldNote[] {
  return checkPodNames({ name, generateName: "", spec }).map(({ message }) => ({
    field: requestPath(["spec", "replicaSpecs"]),
    message: `must keep the names of pods short enough: the job's name ${message}`,
  }));
}

/** Requests that a job be cancelled. Its worker does so. Wakes the planner, since tokens may become free. */
export async function cancel(ports: IntakePorts, name: JobName, reason: string): Promise<EndOutcome> {
  return wakeOnEnd(ports, await ports.store.requestCancel(name, reason, ports.clock.nowMs()));
}

/** Requests that a job and all its objects be deleted. */
export async function remove(ports: IntakePorts, name: JobName): Promise<EndOutcome> {
  return wakeOnEnd(ports, await ports.store.requestDelete(name, ports.clock.nowMs()));
}

function wakeOnEnd(ports: IntakePorts, outcome: EndOutcome): EndOutcome {
  if (outcome.kind === "cancelled" || outcome.kind === "deleting") {
    ports.wakeJob(outcome.job.uid);
    ports.wakePlanner();
  }
  return outcome;
}
