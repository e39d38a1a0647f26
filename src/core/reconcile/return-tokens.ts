/**
 * Gives back the tokens of members that have ended while the others run on. It serves teams whose jobs wait for GPUs on
 * which nothing runs any more. Such a member never runs again under its admission.
 */
import { objectAt } from "../../runtime/json.ts";
import { maxOf } from "../../runtime/lists.ts";
import { ofRole } from "../job/flavor-labels.ts";
import type { JobSpec } from "../job/spec.ts";
import type { GangAdmission } from "../job/status.ts";
import { hasEnded } from "../pods/read/pod-view.ts";
import { podRequests } from "../pods/resources.ts";
import type { Arrangement, Slot } from "./arrange-gang.ts";
import { changeAdmission, type Draft, type Inputs, OUTSTANDING_MS } from "./decision-draft.ts";
import { returnedKeys } from "./member-ends.ts";
import { afterRun } from "./undo/admission-backoff.ts";
import { waitAgain } from "./undo/wait-again.ts";

/**
 * Notes which members hold no tokens any more: those that have ended by the record, once each pod of theirs that is
 * seen has ended and no call can create another. `placed`: the pods with the phases that Kubernetes reports, since
 * containers may run on beside a program that has ended.
 */
export function returnTokens(
  draft: Draft,
  { job, nowMs }: Inputs,
  { admission, placed }: { readonly admission: GangAdmission; readonly placed: Arrangement },
): GangAdmission {
  const { ended = {}, lastEndMs = nowMs } = admission;
  const known = returnedKeys(admission);
  const over = placed.slots.filter(({ key }) => ended[key] !== undefined && !known.has(key));
  if (over.length === 0) return admission;
  const holds = rolesWithTokens(job.spec, admission);
  const runs = new Set(placed.strays.flatMap((pod) => (hasEnded(pod) ? [] : [`${pod.role}/${pod.index}`])));
  const back = over.filter((slot) => {
    if (!holds.has(slot.role) || runs.has(slot.key.toLowerCase()) || !podsHaveEnded(slot)) return false;
    const settledAtMs = requestedUntilMs(slot, lastEndMs) + OUTSTANDING_MS;
    if (nowMs < settledAtMs) draft.recheckAtMs.push(settledAtMs);
    return nowMs >= settledAtMs;
  });
  if (back.length === 0) return admission;
  const noted = { ...admission, returned: withReturned(admission, back) };
  changeAdmission(draft, noted);
  const message = `Admission ${admission.number} has released the tokens of ${back.length} member(s) that have ended.`;
  draft.events.push({ type: "Normal", reason: "TokensReleased", message });
  return noted;
}

/** The replica types whose pods request a resource that is counted in tokens. */
function rolesWithTokens({ replicaSpecs }: JobSpec, { flavors }: GangAdmission): ReadonlySet<string> {
  const holding = Object.keys(replicaSpecs).filter((role) => {
    const resources = Object.keys(ofRole(flavors, role));
    if (resources.length === 0) return false;
    const requests = podRequests(objectAt(replicaSpecs[role]?.template, "spec"));
    return resources.some((resource) => (requests[resource] ?? 0) > 0);
  });
  return new Set(holding);
}

function podsHaveEnded({ pod, stale }: Slot): boolean {
  return (pod === null || hasEnded(pod)) && stale.every(hasEnded);
}

/**
 * The time until which the pod of a member was requested. A create whose answer was lost may make it again once the pod
 * that is seen has gone.
 */
function requestedUntilMs({ pod, taken, foreign }: Slot, lastEndMs: number): number {
  const isThere = pod !== null && taken && !foreign;
  return isThere ? Math.min(pod.createTimeMs, lastEndMs) : lastEndMs;
}

function withReturned({ returned = {} }: GangAdmission, back: readonly Slot[]): NonNullable<GangAdmission["returned"]> {
  const all = Map.groupBy(back, ({ role }) => role);
  const added = [...all].map(([role, slots]) => {
    const indexes = [...(returned[role] ?? []), ...slots.map(({ index }) => index)];
    return [role, indexes.sort((a, b) => a - b)] as const;
  });
  return { ...returned, ...Object.fromEntries(added) };
}

/**
 * Undoes an admission whose gang restarts members that gave their tokens back. Nothing may run without tokens, so the
 * gang waits in its queue for all of them. The restart's backoff passes there. Returns true if it did.
 */
export function undoForRestart(
  draft: Draft,
  inputs: Inputs,
  { admission, arranged }: { readonly admission: GangAdmission; readonly arranged: Arrangement },
): boolean {
  const { ended = {}, number, cluster } = admission;
  const again = [...returnedKeys(admission)].filter((key) => ended[key] === undefined);
  if (again.length === 0) return false;
  const { backoff, attempts } = draft.status;
  const notBeforeMs = maxOf(
    arranged.slots.map(({ key }) => attempts.notBeforeMs[key] ?? inputs.nowMs),
    inputs.nowMs,
  );
  const why = `the gang restarts as a whole, and ${again.length} member(s) that had ended gave back their tokens`;
  const message = `Admission ${number} on ${cluster} is undone: ${why}.`;
  const undone = { admission, reason: "GangRestart", waitsFor: "Backoff", message, arranged };
  waitAgain(draft, inputs, { ...undone, backoff: afterRun(backoff, { notBeforeMs, why }) });
  return true;
}
