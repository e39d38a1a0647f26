import type { Job } from "../core/job/job.ts";
import { QUEUE_LABEL } from "../core/job/labels.ts";
import type { FieldNote } from "../core/job/sent.ts";
import { type ChangeDecision, changeJob, type WantedChange } from "../core/kinds/change-job.ts";
import { kindOfJob } from "../core/kinds/registry.ts";
import { checkLabels } from "./check-metadata.ts";
import { checkPodNames, toNote } from "./check-spec.ts";
import type { Which } from "./end.ts";
import type { IntakePorts } from "./ports.ts";
import { requestPath } from "./request-path.ts";

/** How a change ended; violations name fields as the request does. */
export type Changed =
  | Exclude<ChangeDecision, { readonly kind: "invalid" }>
  | { readonly kind: "invalid"; readonly violations: readonly FieldNote[] }
  | { readonly kind: "notFound" };

/** Changes what may change of a job. Its worker and the planner hear of it at once. */
export async function change(ports: IntakePorts, which: Which, wanted: WantedChange): Promise<Changed> {
  const nowMs = ports.clock.nowMs();
  const outcome = await ports.store.changeJob(which, (job) => decide(job, wanted, nowMs), nowMs);
  if (outcome.kind === "changed") {
    ports.wakeJob(outcome.job.uid);
    ports.wakePlanner();
  }
  return outcome;
}

function decide(job: Job, wanted: WantedChange, nowMs: number): Exclude<Changed, { readonly kind: "notFound" }> {
  const kind = kindOfJob(job);
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

/** The queue was settled when the job was made: a label that seems to move it would deceive. */
function labelNotes(job: Job, labels: Job["labels"]): readonly FieldNote[] {
  const moved = (labels[QUEUE_LABEL] ?? "") !== (job.labels[QUEUE_LABEL] ?? "");
  const message = "names the job's queue, which cannot change";
  return [...checkLabels({ labels }), ...(moved ? [{ field: requestPath(["labels", QUEUE_LABEL]), message }] : [])];
}

function nameNotes({ name, spec }: Job): readonly FieldNote[] {
  return checkPodNames({ name, generateName: "", spec }).map(({ message }) => ({
    field: requestPath(["spec", "replicaSpecs"]),
    message: `the job's name ${message}`,
  }));
}
