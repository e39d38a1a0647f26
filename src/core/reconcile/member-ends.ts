/**
 * Records how members of a gang have ended. It serves users whose member has done its work: it must not run a second
 * time because its pod is deleted, or because its node leaves.
 */

import { replicaKey } from "../job/roles.ts";
import type { Admission, GangAdmission, MemberEnd, ReplicaKey } from "../job/status.ts";
import type { FailureAction } from "../kinds/kind-rules.ts";
import type { PodFailure } from "../pods/read/failure.ts";
import { hasEndedItself, type PodView } from "../pods/read/pod-view.ts";
import type { Slot } from "./arrange-gang.ts";
import { changeAdmission, type Draft, type Inputs } from "./decision-draft.ts";

/**
 * Adds the members that have ended to the record of their admission. Members whose attempt has just risen start anew:
 * the record forgets their end. It also forgets members that the gang gives up, unless their tokens were given back.
 */
export function noteEnds(
  draft: Draft,
  { nowMs }: Pick<Inputs, "nowMs">,
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
  const { ended: known = {}, lastEndMs = nowMs, ...rest } = admission;
  const ended = Object.fromEntries([...ends, ...endsBeyond(admission, slots)]);
  const isNew = Object.keys(ended).some((key) => !(key in known));
  const isNone = Object.keys(ended).length === 0;
  const noted = isNone ? rest : { ...rest, ended, lastEndMs: isNew ? nowMs : lastEndMs };
  changeAdmission(draft, noted);
  return noted;
}

/** The ends of members that are about to be given up. If the gang is scaled up before, they must not run again. */
function endsBeyond(admission: GangAdmission, slots: readonly Slot[]): readonly [ReplicaKey, MemberEnd][] {
  const { ended = {} } = admission;
  const present = new Set(slots.map(({ key }) => key));
  return [...returnedKeys(admission)].flatMap((key): readonly [ReplicaKey, MemberEnd][] => {
    const end = present.has(key) ? undefined : ended[key];
    return end === undefined ? [] : [[key, end]];
  });
}

/** The members that gave their tokens back. */
export function returnedKeys({ returned = {} }: Pick<Admission, "returned">): ReadonlySet<ReplicaKey> {
  const keys = Object.entries(returned).map(([role, indexes]) => indexes.map((index) => replicaKey(role, index)));
  return new Set(keys.flat());
}

/** The admission with fewer members, of which these slots are left: without the ends of those that it gives up. */
export function withoutGivenUp(admission: Admission, members: Admission["members"], slots: readonly Slot[]): Admission {
  const { ended = {}, returned = {}, ...rest } = admission;
  const left = new Set<string>(slots.map(({ key }) => key));
  const ends = Object.entries(ended).filter(([key]) => left.has(key));
  const back = Object.entries(returned).flatMap(([role, indexes]) => {
    const kept = indexes.filter((index) => index < (members[role] ?? 0));
    return kept.length === 0 ? [] : [[role, kept] as const];
  });
  return {
    ...rest,
    members,
    ...(ends.length === 0 ? {} : { ended: Object.fromEntries(ends) }),
    ...(back.length === 0 ? {} : { returned: Object.fromEntries(back) }),
  };
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

/** A failed pod of the attempt that the record names. */
export type SlotFailure = {
  readonly slot: Slot;
  readonly pod: PodView;
  readonly failure: PodFailure;
  readonly retried: boolean;
  /** What the rules of the kind say. Omitted: the kind has none. */
  readonly action?: FailureAction;
};
