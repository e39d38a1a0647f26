/**
 * Decides about a job that is set aside. Its pods, tokens and time limits stay, and nothing reads its templates: the
 * step that built its objects has stopped workers (`core/blame`). It serves users whose other jobs must go on.
 */
import { judge } from "../blame/judge.ts";
import type { Blame, StepNote } from "../blame/step-note.ts";
import { type Job, liveAdmission } from "../job/job.ts";
import { withoutNomination } from "../job/nomination.ts";
import { isSetAside, lastResumeMs } from "../job/set-aside.ts";
import { type Admission, type GangAdmission, isTerminal } from "../job/status.ts";
import { arrangeGang } from "./arrange-gang.ts";
import type { Decision } from "./decision.ts";
import { changeCondition, type Draft, finishDraft, type Inputs, OUTSTANDING_MS, startDraft } from "./decision-draft.ts";
import { endByDeadline } from "./finish-job.ts";
import { showPods } from "./gang-status.ts";
import { judgePods } from "./judge-pods.ts";
import { noteMinimum } from "./note-minimum.ts";
import { forgetShrink } from "./scale-down.ts";
import { undoAdmission } from "./undo/undo-admission.ts";

/**
 * Sets a job aside if the watchdog's notes blame it. Null: they do not, or it is set aside already. What the planner
 * keeps for the job passes on.
 */
export function setAside(job: Job, notes: readonly StepNote[], nowMs: number): Decision | null {
  const blame = isSetAside(job) ? null : judge(notes, { resumedMs: lastResumeMs(job) }, nowMs);
  if (blame === null) return null;
  const draft = startDraft(job);
  const { reason, message } = blame;
  if (!isTerminal(job.status)) changeCondition(draft, { type: "SetAside", status: "True", reason, message }, nowMs);
  draft.status = {
    ...withoutNomination(draft.status),
    ...waitingFor(job, blame, nowMs),
    setAside: { sinceMs: nowMs, ...blame },
  };
  // The planner asks again in another way: a gang that is set aside gives up all of its members or none.
  forgetShrink(draft);
  draft.events.push({ type: "Warning", reason: "SetAside", message });
  draft.recheckAtMs.push(nowMs);
  return finishDraft(draft, job, nowMs);
}

function waitingFor({ status }: Job, { message }: Blame, nowMs: number) {
  return status.phase === "WAITING" ? { waiting: { reason: "SetAside", message, sinceMs: nowMs } } : {};
}

/**
 * Keeps a live admission of a gang that is set aside: counts its pods, and ends or undoes it at its limits of time.
 * Creates, deletes and judges no pod.
 */
export function holdGang(draft: Draft, inputs: Inputs, live: Admission): void {
  const { cluster } = live;
  if (endByDeadline(draft, inputs)) return;
  if (cluster === null) return;
  if (!inputs.observed.some((seen) => seen.cluster === cluster)) {
    draft.recheckAtMs.push(inputs.nowMs + OUTSTANDING_MS);
    return;
  }
  const admission: GangAdmission = { ...live, cluster };
  const arranged = judgePods(arrangeGang(inputs, admission), inputs);
  showPods(draft, inputs, { admission, arranged, failures: [] });
  // Pods that failed have started: whether they are restarted is decided once the job is resumed.
  const over = arranged.slots.filter(({ reading, ended }) => reading?.kind === "failed" || ended === "FAILED").length;
  const noted = noteMinimum(draft, inputs, { admission, arranged, over });
  undoAdmission(draft, inputs, { admission: noted, arranged });
}

/** Ends a job without pods that is set aside at its limits of time. Its plugin is not called before it ends. */
export function holdTask(draft: Draft, inputs: Inputs): void {
  if (liveAdmission(draft) !== null) endByDeadline(draft, inputs);
}
