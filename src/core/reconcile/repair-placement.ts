import { minOf } from "../../runtime/lists.ts";
import { LABEL } from "../job/labels.ts";
import { type PlannedPlaces, placesIn } from "../job/placement/placement.ts";
import type { GangAdmission, RepairRequest } from "../job/status.ts";
import type { PodView } from "../pods/read/pod-view.ts";
import type { Slot } from "./arrange-gang.ts";
import { changeAdmission, type Draft, type Inputs } from "./decision-draft.ts";

/** How long a pod is unschedulable before its member is planned anew; each time of an admission twice as long. */
const WAIT_MS = 20_000;
/** After so many times the start timeout decides. */
const REPAIRS_MAX = 3;
/** So many members are planned anew at a time. */
const MEMBERS_MAX = 64;

/**
 * Asks the planner for other nodes for members whose pods the scheduler cannot place on theirs. Once it has recorded
 * some, `doomedByRepair` names the pods to make again. It counts as no failure.
 */
export function requestRepair(
  draft: Draft,
  inputs: Inputs,
  { admission, slots }: { readonly admission: GangAdmission; readonly slots: readonly Slot[] },
): GangAdmission {
  const { placement, nowMs } = inputs;
  if (placement === null) return admission;
  const { repair } = admission;
  const places = placesIn(placement);
  const waiting = slots.flatMap((slot) => {
    const sinceMs = slot.pod === null ? null : unschedulableSince(slot.pod);
    return sinceMs !== null && isPlanned(slot, places) ? [{ slot, sinceMs }] : [];
  });
  if (waiting.length === 0) return repair !== undefined && areBound(slots) ? forgetRepair(draft, admission) : admission;
  const times = repair?.times ?? 0;
  const isAnswered = repair === undefined || repair.version < placement.version;
  if (!isAnswered || times >= REPAIRS_MAX) return admission;
  const waitMs = WAIT_MS * 2 ** times;
  const due = waiting.filter(({ sinceMs }) => nowMs >= sinceMs + waitMs);
  if (due.length === 0) {
    draft.recheckAtMs.push(minOf(waiting.map(({ sinceMs }) => sinceMs)) + waitMs);
    return admission;
  }
  const members = due.slice(0, MEMBERS_MAX).map(({ slot }) => slot.key);
  return change(draft, admission, { version: placement.version, times: times + 1, members });
}

/** The pods of members that were planned anew before their pods were bound. */
export function doomedByRepair(slots: readonly Slot[], places: PlannedPlaces): readonly PodView[] {
  return slots.flatMap(({ role, index, pod }) => {
    if (pod === null || pod.deleting || isBound(pod)) return [];
    const version = places(role, index)?.version ?? 0;
    const made = Number(pod.labels[LABEL.placement] ?? Number.POSITIVE_INFINITY);
    return made < version ? [pod] : [];
  });
}

/** True for a pod that is on a node, or has ended. */
function isBound({ nodeName, phase }: PodView): boolean {
  return nodeName !== "" || phase !== "Pending";
}

function areBound(slots: readonly Slot[]): boolean {
  return slots.every(({ pod, ended }) => ended !== null || (pod !== null && isBound(pod)));
}

/** Only pods that were made for a place are made again for another one. */
function isPlanned({ role, index, pod }: Slot, places: PlannedPlaces): boolean {
  return pod?.labels[LABEL.placement] !== undefined && places(role, index) !== null;
}

/** Since when the scheduler finds no node for a pod. Null: it does not say so, or not since when. */
function unschedulableSince(pod: PodView): number | null {
  if (pod.deleting || isBound(pod)) return null;
  const scheduled = pod.conditions.find(({ type }) => type === "PodScheduled");
  const isRefused = scheduled?.status === "False" && scheduled.reason === "Unschedulable";
  return isRefused ? scheduled.sinceMs : null;
}

function forgetRepair(draft: Draft, { repair: _, ...admission }: GangAdmission): GangAdmission {
  changeAdmission(draft, admission);
  return admission;
}

function change(draft: Draft, admission: GangAdmission, repair: RepairRequest): GangAdmission {
  const changed = { ...admission, repair };
  changeAdmission(draft, changed);
  return changed;
}
