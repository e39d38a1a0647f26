/**
 * Records how members of a gang have ended. It serves users whose member has done its work: it must not run a second
 * time because its pod is deleted, or because its node leaves.
 */
import type { GangAdmission, MemberEnd, ReplicaKey } from "../job/status.ts";
import { hasEndedItself } from "../pods/pod-view.ts";
import type { Slot } from "./arrange-gang.ts";
import type { SlotFailure } from "./count-failures.ts";
import { changeAdmission, type Draft } from "./decision-draft.ts";

/**
 * Adds the members that have ended to the record of their admission. Members whose attempt has just risen start anew:
 * the record forgets their end. It also forgets members that the gang has given up.
 */
export function noteEnds(
  draft: Draft,
  of: {
    readonly admission: GangAdmission;
    /** With the attempts that the draft names. */
    readonly slots: readonly Slot[];
    readonly failures: readonly SlotFailure[];
    /** The attempts before this pass. */
    readonly before: Readonly<Record<string, number>>;
  },
): GangAdmission {
  const { admission, slots, failures, before } = of;
  const failed = new Set(failures.filter(({ retried }) => !retried).map(({ slot }) => slot.key));
  const ends = slots.flatMap((slot): readonly [ReplicaKey, MemberEnd][] => {
    if (slot.attempt !== (before[slot.key] ?? 1)) return [];
    const end = slot.ended ?? endOf(slot, failed);
    return end === null ? [] : [[slot.key, end]];
  });
  const { ended: _before, ...rest } = admission;
  const noted = ends.length === 0 ? rest : { ...rest, ended: Object.fromEntries(ends) };
  changeAdmission(draft, noted);
  return noted;
}

/** Deletion causes the end of a pod that ran until then: such an end is not the member's. */
function endOf({ key, pod }: Slot, failed: ReadonlySet<ReplicaKey>): MemberEnd | null {
  if (failed.has(key)) return "FAILED";
  return pod?.phase === "Succeeded" && hasEndedItself(pod) ? "SUCCEEDED" : null;
}

/** True if the member has succeeded, by its pod or by the record. A pod stays a success while it is being deleted. */
export function hasSucceeded({ pod, ended }: Pick<Slot, "pod" | "ended">): boolean {
  return ended === "SUCCEEDED" || pod?.phase === "Succeeded";
}

/** The members that failed for good, whose pods may be gone. */
export function failedForGood<S extends Pick<Slot, "key" | "ended">>(
  slots: readonly S[],
  failures: readonly SlotFailure[],
): readonly S[] {
  const failed = new Set(failures.filter(({ retried }) => !retried).map(({ slot }) => slot.key));
  return slots.filter(({ key, ended }) => ended === "FAILED" || failed.has(key));
}
