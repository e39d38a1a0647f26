import { objectAt, stringAt } from "../../runtime/json.ts";
import { append } from "../../runtime/lists.ts";
import type { JobEvent } from "../job/event.ts";
import type { Job } from "../job/job.ts";
import type { Admission, GangAdmission } from "../job/status.ts";
import { type GangScheduler, namesOtherScheduler } from "../pods/build/pod-group.ts";
import { type Arrangement, arrangeGang, isDelayed } from "./arrange-gang.ts";
import { newFailures } from "./count-failures.ts";
import { type Draft, type Inputs, OUTSTANDING_MS, reasonOf } from "./decision-draft.ts";
import { endByBudget, endByRefusal, endBySize, endByVerdict } from "./end-gang.ts";
import { endByDeadline } from "./finish-job.ts";
import { exitEvents, showPods, showProgress } from "./gang-status.ts";
import { awaitGrace, judgePods } from "./judge-pods.ts";
import { failedForGood, noteEnds } from "./member-ends.ts";
import { noteMinimum } from "./note-minimum.ts";
import { syncObjects } from "./objects/sync-objects.ts";
import { restartGrown } from "./partial-gang.ts";
import { showProblems } from "./problems/show-problems.ts";
import { requestRepair } from "./repair-placement.ts";
import { returnTokens, undoForRestart } from "./return-tokens.ts";
import { restartByRules, withoutLostWork } from "./rules/restart-gang.ts";
import { noteWaiting } from "./rules/waiting-members.ts";
import { goOnWithWork } from "./rules/work-parts.ts";
import { giveUpMembers } from "./scale-down.ts";
import { undoAdmission } from "./undo/undo-admission.ts";

/**
 * Brings a live admission of a gang forward: starts it, judges its pods, counts their failures, ends or undoes it, and
 * decides which objects to create and delete. The deadline comes first, then the verdict of the kind, then the budgets,
 * as with Kubeflow. Without a view of the cluster only the deadline is checked.
 */
export function runGang(draft: Draft, given: Inputs, live: Admission): void {
  const inputs = withoutLostWork(draft, given, live);
  const { cluster } = live;
  if (cluster === null || !inputs.observed.some((seen) => seen.cluster === cluster)) {
    if (!endByDeadline(draft, inputs)) draft.recheckAtMs.push(inputs.nowMs + OUTSTANDING_MS);
    return;
  }
  const admission: GangAdmission = { ...live, cluster };
  const seen = judgePods(arrangeGang(inputs, admission), inputs);
  awaitGrace(
    draft,
    seen.slots.map(({ reading }) => reading),
  );
  if (draft.status.startTimeMs === null && !isDelayed(seen)) start(draft, inputs, seen);
  const failures = newFailures(seen.slots, inputs);
  showPods(draft, inputs, { admission, arranged: seen, failures });
  append(draft.events, exitEvents({ slots: seen.slots, failures }, inputs));
  if (endJob(draft, inputs, { admission, slots: seen.slots, failures })) return;
  const anew = restartByRules(draft, inputs, { admission, slots: seen.slots, failures });
  const told = restartGrown(draft, inputs, { admission: anew ?? admission, slots: seen.slots });
  const counted = { ...inputs, job: { ...inputs.job, status: draft.status } };
  const placed = arrangeGang(counted, told);
  const arranged = judgePods(placed, inputs);
  showPods(draft, inputs, { admission, arranged, failures });
  showProgress(draft, counted, { admission: told, arranged, failures });
  const left = anew === null ? failures : [];
  const { byReplica: before } = inputs.job.status.attempts;
  const noted = noteEnds(draft, inputs, { admission: told, slots: arranged.slots, failures: left, before });
  const ended = goOnWithWork(draft, counted, { admission: noted, slots: arranged.slots, failures: left });
  if (undoForRestart(draft, inputs, { admission: ended, arranged })) return;
  const returned = returnTokens(draft, inputs, { admission: ended, placed });
  const { admission: begun, keys: waiting } = noteWaiting(draft, inputs, {
    admission: returned,
    slots: arranged.slots,
  });
  const over = failedForGood(arranged.slots, left).length + waiting.size;
  const going = noteMinimum(draft, inputs, { admission: begun, arranged, over });
  if (undoAdmission(draft, inputs, { admission: going, arranged })) return;
  giveUpMembers(draft, inputs, { admission: going, arranged });
  requestRepair(draft, inputs, { admission: going, slots: arranged.slots });
  const synced = syncObjects(draft, inputs, going, { arranged, waiting });
  if (synced !== "synced") {
    endBySize(draft, inputs, synced);
    return;
  }
  showProblems(draft, inputs, { admission: going, arranged });
}

/** Ends the job if it is time, in this order. Returns true if it did. */
function endJob(
  draft: Draft,
  inputs: Inputs,
  of: Parameters<typeof endByRefusal>[2] & Parameters<typeof endByVerdict>[2],
): boolean {
  return (
    endByDeadline(draft, inputs) ||
    endByVerdict(draft, inputs, of) ||
    endByRefusal(draft, inputs, of) ||
    endByBudget(draft, inputs, of)
  );
}

function start(draft: Draft, { job, nowMs }: Inputs, { gang }: Arrangement): void {
  draft.status = { ...draft.status, phase: "STARTING", startTimeMs: nowMs, waiting: null };
  draft.events.push({
    type: "Normal",
    reason: reasonOf(job, "Starting"),
    message: `${job.spec.kind} ${job.name} is starting.`,
  });
  append(draft.events, templateWarnings(job, gang.scheduler));
}

/** Warns about fields of a job's templates that have no effect, in the words of Kubeflow's operator. */
function templateWarnings({ spec }: Job, scheduler: GangScheduler | null): readonly JobEvent[] {
  const warnings: JobEvent[] = [];
  const restarts = Object.values(spec.replicaSpecs).some(({ template }) =>
    stringAt(objectAt(template, "spec"), "restartPolicy"),
  );
  if (restarts) {
    const message = "Restart policy in pod template will be overwritten by restart policy in replica spec";
    warnings.push({ type: "Warning", reason: "SettedPodTemplateRestartPolicy", message });
  }
  if (scheduler !== null && namesOtherScheduler(spec, scheduler)) {
    const message = "Another scheduler is specified when gang-scheduling is enabled and it will not be overwritten";
    warnings.push({ type: "Warning", reason: "SettedPodTemplateSchedulerName", message });
  }
  return warnings;
}
