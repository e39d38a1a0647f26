import { canonicalJson } from "../../runtime/json.ts";
import { holdingMembers, memberCount } from "./roles.ts";
import type { Admission } from "./status.ts";

/** The changes of a job's admissions by one record, and their effects on tokens and clusters. */
export type AdmissionChanges = {
  /** The admissions that are new or differ. */
  readonly changed: readonly Admission[];
  /** The numbers of admissions that no longer hold tokens. */
  readonly released: readonly number[];
  /** Admissions that keep tokens, but for fewer members than before. */
  readonly shrunk: readonly Admission[];
  /** The numbers of admissions that have no objects left in their cluster. */
  readonly gone: readonly number[];
};

/**
 * Compares a job's admissions with those of a new record. An admission that the new record no longer names has ended:
 * it holds no tokens and has no objects left.
 */
export function admissionChanges(
  before: readonly Admission[],
  after: readonly Admission[],
  nowMs: number,
): AdmissionChanges {
  const earlier = new Map(before.map((admission) => [admission.number, admission]));
  const changed = [...after, ...dropped(before, after, nowMs)].filter(
    (admission) => canonicalJson(earlier.get(admission.number) ?? null) !== canonicalJson(admission),
  );
  const released = changed.filter(
    ({ number, tokensReleasedMs }) => tokensReleasedMs !== null && earlier.get(number)?.tokensReleasedMs === null,
  );
  return {
    changed,
    released: released.map(({ number }) => number),
    shrunk: changed.filter(
      (admission) => admission.tokensReleasedMs === null && holdsForFewer(admission, earlier.get(admission.number)),
    ),
    gone: changed.filter(({ goneMs }) => goneMs !== null).map(({ number }) => number),
  };
}

function dropped(before: readonly Admission[], after: readonly Admission[], nowMs: number): readonly Admission[] {
  const named = new Set(after.map((admission) => admission.number));
  return before
    .filter((admission) => !named.has(admission.number))
    .map((admission) => ({
      ...admission,
      state: admission.state === "live" ? "ended" : admission.state,
      tokensReleasedMs: admission.tokensReleasedMs ?? nowMs,
      goneMs: admission.goneMs ?? nowMs,
    }));
}

/** True if an admission holds tokens for fewer members than before. */
export function holdsForFewer(after: Admission, before: Admission | undefined): boolean {
  return before !== undefined && memberCount(holdingMembers(after)) < memberCount(holdingMembers(before));
}
