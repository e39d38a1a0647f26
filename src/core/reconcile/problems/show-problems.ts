/**
 * Writes into a job's status why pods of its live admission do not run. It serves users who ask why a job that was
 * admitted does not start.
 */
import { groupProblems, nextProblems } from "../../job/pod-problems.ts";
import type { GangAdmission } from "../../job/status.ts";
import type { PodView } from "../../pods/read/pod-view.ts";
import { type Problem, readProblem } from "../../pods/read/read-problem.ts";
import { type Arrangement, isDelayed, type Slot } from "../arrange-gang.ts";
import { type Draft, finishDraft, type Inputs } from "../decision-draft.ts";
import type { JudgedArrangement } from "../judge-pods.ts";
import { actionName } from "./action-name.ts";
import { noteStartProblem } from "./start-problem.ts";

/** The beginning of the reasons of refused creates. */
const FAILED_CREATE = "FailedCreate";
/** How long a gang scheduler may take to admit a gang. */
const ADMITTING_MS = 10_000;

/** Writes the present problems of the gang's pods. Must follow the decision on which objects to create. */
export function showProblems(
  draft: Draft,
  inputs: Inputs,
  of: { readonly admission: GangAdmission; readonly arranged: JudgedArrangement },
): void {
  const { nowMs } = inputs;
  const lacking = whyMissing(draft, inputs, of);
  const each = of.arranged.slots.flatMap((slot) => {
    const found = problemIn(draft, slot, { lacking, nowMs });
    return found === null ? [] : [{ replicaType: slot.role, reason: found.reason, message: found.message }];
  });
  if (of.admission.belowMinSinceMs !== null) noteStartProblem(draft, of.admission.number, each);
  recordProblems(draft, inputs, each);
}

/** Writes problems of pods into the status, or removes those that are over. */
export function recordProblems(
  draft: Draft,
  { nowMs, job }: Inputs,
  each: readonly (Problem & { readonly replicaType: string })[],
): void {
  const { next, rewordAtMs } = nextProblems(draft.status.podProblems, groupProblems(each), {
    nowMs,
    writesAnyway: () => finishDraft(draft, job, nowMs).record !== null,
  });
  if (rewordAtMs !== null) draft.recheckAtMs.push(rewordAtMs);
  if (next === undefined) forgetProblems(draft);
  else draft.status = { ...draft.status, podProblems: next };
}

/** The problem of a pod now. Looks again when one begins or ends by itself. */
export function problemNow(draft: Draft, pod: PodView, nowMs: number): Problem | null {
  const reading = readProblem(pod, nowMs);
  if (reading.kind === "later") draft.recheckAtMs.push(reading.atMs);
  if (reading.kind !== "problem") return null;
  if (reading.untilMs !== undefined) draft.recheckAtMs.push(reading.untilMs);
  return reading;
}

export function forgetProblems(draft: Draft): void {
  const { podProblems: _none, ...status } = draft.status;
  draft.status = status;
}

type Missing = { readonly why: Problem; readonly isConcerned: (slot: Slot) => boolean };

/**
 * Why pods are not created: the API server refuses them, or the gang scheduler delays them. A recorded refusal counts
 * until nothing is to be created, because a worker that has just taken the job over knows no refusal. Null: no reason.
 */
function whyMissing(
  draft: Draft,
  { refused, nowMs }: Inputs,
  { admission, arranged }: { readonly admission: GangAdmission; readonly arranged: Arrangement },
): Missing | null {
  const creates = draft.actions.filter(({ kind }) => kind.startsWith("create"));
  const pods = new Set(creates.filter(({ kind }) => kind === "createPod").map(actionName));
  const isConcerned = ({ name }: Slot) => pods.size === 0 || pods.has(name);
  const known = draft.status.podProblems?.problems.find(({ reason }) => reason.startsWith(FAILED_CREATE));
  const why = refused?.admission === admission.number ? refused : known;
  if (creates.length > 0 && why !== undefined) return { why, isConcerned };
  return whyDelayed(draft, { admission, arranged, nowMs });
}

/** A gang scheduler that takes long to admit a gang. */
function whyDelayed(
  draft: Draft,
  of: { readonly admission: GangAdmission; readonly arranged: Arrangement; readonly nowMs: number },
): Missing | null {
  const { scheduler, group } = of.arranged.gang;
  if (!isDelayed(of.arranged) || group === null) return null;
  const atMs = of.admission.admitTimeMs + ADMITTING_MS;
  if (of.nowMs < atMs) {
    draft.recheckAtMs.push(atMs);
    return null;
  }
  const message = `the scheduler ${scheduler} has not admitted the gang: its PodGroup is ${group.phase || "Pending"}`;
  return { why: { reason: "PodGroupPending", message }, isConcerned: () => true };
}

function problemIn(
  draft: Draft,
  slot: Slot,
  { lacking, nowMs }: { readonly lacking: Missing | null; readonly nowMs: number },
): Problem | null {
  const [pod = null] = slot.pod === null ? slot.stale : [slot.pod];
  if (pod !== null) return problemNow(draft, pod, nowMs);
  if (slot.foreign) {
    const message = `a pod that does not belong to this job has the name ${slot.name}`;
    return { reason: "NameTaken", message };
  }
  return !slot.taken && slot.ended === null && lacking?.isConcerned(slot) ? lacking.why : null;
}
