import type { Job } from "../core/job/job.ts";
import { QUEUE_LABEL } from "../core/job/labels.ts";
import { joinNotes } from "../core/job/request/notes.ts";
import type { EndOutcome, JobName, UpdateOutcome } from "../core/job/request/requests.ts";
import type { FieldNote, SentJob } from "../core/job/request/sent.ts";
import { isSetAside } from "../core/job/set-aside.ts";
import { type AskedChange, changeJob, type WantedChange } from "../core/kinds/change-job.ts";
import type { Kind } from "../core/kinds/kind.ts";
import { kindOfJob } from "../core/kinds/registry.ts";
import { changedTemplates } from "./change-templates.ts";
import { checkLabels, isDnsLabel } from "./check-metadata.ts";
import { namedClass } from "./check-priority.ts";
import { checkPodNames, toNote } from "./check-spec.ts";
import { policyNotes } from "./check-templates.ts";
import { changedPodNotes } from "./judge-pods.ts";
import type { IntakeFacts, IntakePorts, IntakeRules } from "./ports.ts";
import { requestPath } from "./request-path.ts";
import { rulesOf } from "./rules.ts";
import { sizeNotes } from "./size-notes.ts";

/** Changes the mutable fields of a job, and wakes its worker and the planner. */
export async function change(ports: IntakePorts, name: JobName, asked: AskedChange): Promise<UpdateOutcome> {
  const nowMs = ports.clock.nowMs();
  const facts = isDnsLabel(name.namespace) ? await ports.store.facts({ namespace: name.namespace }) : null;
  const rules = rulesOf(ports, facts);
  const { wanted, notes } = await withClass(asked, facts);
  const decideNow = (job: Job, sent: SentJob) => {
    const { templates } = asked;
    if (templates === undefined) return decide(rules, { job, sent, wanted, notes, nowMs });
    const changed = changedTemplates({ job, sent, kind: kindOfJob(rules.kinds, job) }, templates, rules);
    if (changed.notes.length > 0) return { kind: "invalid" as const, violations: changed.notes };
    const withTemplates = { ...wanted, templates: changed.templates };
    return decide(rules, { job, sent: changed.sent, wanted: withTemplates, notes, nowMs });
  };
  const outcome = await ports.store.changeJob(name, decideNow, nowMs);
  if (outcome.kind === "changed") {
    ports.wakeJob(outcome.job.uid);
    ports.wakePlanner();
  }
  return outcome;
}

/** Finds the priority class that a change names, and what is wrong with how it names it. */
async function withClass(
  { priorityClassName, templates: _templates, ...wanted }: AskedChange,
  facts: IntakeFacts | null,
): Promise<{ readonly wanted: WantedChange; readonly notes: readonly FieldNote[] }> {
  if (priorityClassName === undefined || facts === null) return { wanted, notes: [] };
  if (priorityClassName === "") return { wanted: { ...wanted, priorityClass: null }, notes: [] };
  const { priority } = wanted;
  const named = { priorityClassName, ...(priority === undefined ? {} : { priority }) };
  const { priorityClass, notes } = await namedClass(named, facts);
  return { wanted: { ...wanted, priorityClass }, notes };
}

/** `sent`: the job as its client would have sent it, if that changes too. */
type DecidedChange =
  | Exclude<UpdateOutcome, { readonly kind: "notFound" | "changed" }>
  | (Extract<ReturnType<typeof changeJob>, { readonly kind: "changed" }> & { readonly sent?: SentJob });

function decide(
  rules: IntakeRules,
  of: {
    readonly job: Job;
    readonly sent: SentJob;
    readonly wanted: WantedChange;
    /** What is wrong with the priority class that is wanted. */
    readonly notes: readonly FieldNote[];
    readonly nowMs: number;
  },
): DecidedChange {
  const { job, wanted, nowMs } = of;
  const kind = kindOfJob(rules.kinds, job);
  const decided = changeJob(job, kind, wanted, nowMs);
  const labels = [...(wanted.labels === undefined ? [] : labelNotes(job, wanted.labels)), ...of.notes];
  if (decided.kind === "invalid") {
    const named = { replicaSpecs: { ...job.spec.replicaSpecs, ...wanted.replicas } };
    return {
      kind: "invalid",
      violations: joinNotes(
        labels,
        decided.errors.map((error) => toNote(error, named)),
      ),
    };
  }
  if (decided.kind === "unchanged" && of.notes.length > 0) return { kind: "invalid", violations: of.notes };
  if (decided.kind !== "changed") return decided;
  const more =
    wanted.templates !== undefined || asksForMore(job, decided.job)
      ? [policyNotes(of.sent, rules), changedPodNotes(decided.job, rules.kinds), sizeNotes(decided.job, rules.kinds)]
      : [];
  const violations = joinNotes(labels, nameNotes(decided.job, kind), ...more);
  if (violations.length > 0) return { kind: "invalid", violations };
  return wanted.templates === undefined ? decided : { ...decided, sent: of.sent };
}

/** Whether a change starts pods, or starts them earlier. Other changes are allowed whatever the pod policy says now. */
function asksForMore(before: Job, after: Job): boolean {
  const resumed = before.spec.runPolicy.suspend === true && after.spec.runPolicy.suspend !== true;
  const grown = Object.entries(after.spec.replicaSpecs).some(
    ([role, { replicas }]) => replicas > (before.spec.replicaSpecs[role]?.replicas ?? 0),
  );
  const cleared = isSetAside(before) && !isSetAside(after);
  return resumed || cleared || grown || after.spec.priority > before.spec.priority;
}

/** Refuses a new queue label: the queue of a job is fixed when it is created, so the label would mislead. */
function labelNotes(job: Job, labels: Job["labels"]): readonly FieldNote[] {
  const moved = (labels[QUEUE_LABEL] ?? "") !== (job.labels[QUEUE_LABEL] ?? "");
  const message = "must stay: it names the queue of the job, which cannot change";
  return [...checkLabels({ labels }), ...(moved ? [{ field: requestPath(["labels", QUEUE_LABEL]), message }] : [])];
}

function nameNotes({ name, spec }: Job, kind: Kind): readonly FieldNote[] {
  return checkPodNames({ name, generateName: "", spec }, kind).map(({ message }) => ({
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
