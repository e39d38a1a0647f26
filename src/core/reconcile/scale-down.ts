import { keptMembers, memberCount } from "../job/roles.ts";
import type { Admission } from "../job/status.ts";
import { hasEnded } from "../pods/read/pod-view.ts";
import type { Arrangement } from "./arrange-gang.ts";
import { changeAdmission, type Draft, type Inputs, OUTSTANDING_MS } from "./decision-draft.ts";
import { withoutGivenUp } from "./member-ends.ts";

/**
 * Gives up the members that a live gang has beyond its job's replica counts, or that the planner takes for another
 * gang, and releases their tokens. This waits
 * until every pod of theirs that is seen has ended, and until no call from before the change can create another.
 * Meanwhile they stay members, and their pods are deleted.
 */
export function giveUpMembers(
  draft: Draft,
  { job, nowMs }: Inputs,
  { admission, arranged }: { readonly admission: Admission; readonly arranged: Arrangement },
): void {
  const members = keptMembers(job, admission);
  const removed = memberCount(admission.members) - memberCount(members);
  if (removed === 0) {
    forgetShrink(draft);
    return;
  }
  const settledAtMs = (draft.status.resizedMs ?? Number.NEGATIVE_INFINITY) + OUTSTANDING_MS;
  const held = arranged.strays.some((pod) => !hasEnded(pod));
  if (held || nowMs < settledAtMs) {
    draft.recheckAtMs.push(Math.max(settledAtMs, nowMs + OUTSTANDING_MS));
    return;
  }
  changeAdmission(draft, withoutGivenUp(admission, members, arranged.slots));
  forgetShrink(draft);
  const message = `Admission ${admission.number} has given up ${removed} member(s) and released their tokens.`;
  draft.events.push({ type: "Normal", reason: "TokensReleased", message });
}

/** Forgets a request to give up members that was carried out, or whose admission is no longer live. */
export function forgetShrink(draft: Draft): void {
  const { shrink, ...status } = draft.status;
  if (shrink !== undefined) draft.status = status;
}
