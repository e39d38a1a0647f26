/**
 * Finds the members of a gang that get no pod yet, by the rules of its kind. It serves users whose groups of pods start
 * one after the other.
 */
import type { GangAdmission, ReplicaKey } from "../../job/status.ts";
import type { Slot } from "../arrange-gang.ts";
import { changeAdmission, type Draft, type Inputs } from "../decision-draft.ts";
import { gangState } from "./kind-rules.ts";
import { doubleKeys } from "./work-parts.ts";

/** The members of a pass that are given no pod, and the admission with the times from which others could have one. */
type Waiting = { readonly admission: GangAdmission; readonly keys: ReadonlySet<ReplicaKey> };

/** Finds the members that wait for others, or for nothing any more. None of a kind without rules. */
export function noteWaiting(
  draft: Draft,
  { job, kind, nowMs }: Pick<Inputs, "job" | "kind" | "nowMs">,
  { admission, slots }: { readonly admission: GangAdmission; readonly slots: readonly Slot[] },
): Waiting {
  const { rules } = kind;
  if (rules === undefined) return { admission, keys: new Set() };
  const { status } = draft;
  const known = { rules, job: { ...job, status }, admission, nowMs, attempts: status.attempts, failures: [] };
  const gang = gangState(slots, known);
  const mayStart = rules.mayStart(gang);
  const starting = new Set<string>();
  const waiting = slots.filter((slot, at) => {
    const member = gang.members[at];
    const may = member === undefined || mayStart(member);
    if (may) starting.add(slot.role);
    return slot.ended === null && member !== undefined && !member.active && !may;
  });
  const keys = new Set([...waiting.map(({ key }) => key), ...doubleKeys(slots)]);
  const atMs = rules.recheckAtMs?.(gang) ?? null;
  if (atMs !== null) draft.recheckAtMs.push(Math.max(atMs, nowMs));
  if (rules.startsInOrder?.(job.spec) !== true) return { admission, keys };
  return { admission: noteBegun(draft, admission, { roles: [...starting], nowMs }), keys };
}

/** Records from when the members of these replica types could start. */
function noteBegun(
  draft: Draft,
  admission: GangAdmission,
  { roles, nowMs }: { readonly roles: readonly string[]; readonly nowMs: number },
): GangAdmission {
  const { begunMs = {} } = admission;
  const begun = roles.filter((role) => begunMs[role] === undefined);
  if (begun.length === 0) return admission;
  const noted = { ...admission, begunMs: { ...begunMs, ...Object.fromEntries(begun.map((role) => [role, nowMs])) } };
  changeAdmission(draft, noted);
  draft.recheckAtMs.push(nowMs);
  return noted;
}
