import { keptMembers, memberCount } from "../job/roles.ts";
import type { Admission } from "../job/status.ts";
import type { Arrangement } from "./arrange.ts";
import { changeAdmission, type Draft, type Inputs, OUTSTANDING_MS } from "./draft.ts";

/**
 * Gives up the members that a live gang has beyond its job's numbers, and with them their tokens: once no pod of theirs is seen that has not
 * ended, and none can have been asked for by whoever knew the old numbers. Until then they stay members; their pods are deleted meanwhile.
 */
export function giveUpMembers(
  draft: Draft,
  { job, nowMs }: Inputs,
  { admission, arranged }: { readonly admission: Admission; readonly arranged: Arrangement },
): void {
  const members = keptMembers(job.spec, admission.members);
  const removed = memberCount(admission.members) - memberCount(members);
  if (removed === 0) return;
  const settledAtMs = (draft.status.resizedMs ?? Number.NEGATIVE_INFINITY) + OUTSTANDING_MS;
  const held = arranged.strays.some(({ phase }) => phase !== "Succeeded" && phase !== "Failed");
  if (held || nowMs < settledAtMs) {
    draft.recheckAtMs.push(Math.max(settledAtMs, nowMs + OUTSTANDING_MS));
    return;
  }
  changeAdmission(draft, { ...admission, members });
  const message = `Admission ${admission.number} has given up ${removed} member(s) and released their tokens.`;
  draft.events.push({ type: "Normal", reason: "TokensReleased", message });
}
