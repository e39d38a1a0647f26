import type { JobPriorityClass, PreemptionPolicy } from "../job/priority-class.ts";
import type { ChangeOutcome } from "./change-outcome.ts";

/** A priority class as an admin sends it. */
export type PriorityClassSettings = JobPriorityClass & {
  readonly description: string;
  /** True: jobs that name neither a class nor a priority get this one. */
  readonly globalDefault: boolean;
};

export type PriorityClassRecord = PriorityClassSettings & {
  readonly version: number;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
};

/** A change of a priority class. The members that a class keeps for ever are compared: null compares nothing. */
export type PriorityClassChange = Pick<PriorityClassSettings, "name" | "description" | "globalDefault"> & {
  readonly value: number | null;
  readonly preemptionPolicy: PreemptionPolicy | null;
  /** The version that the change expects. 0: any version. */
  readonly version: number;
};

export type PriorityClassOutcome =
  | ChangeOutcome<PriorityClassRecord>
  /** The class of this name is the default already. */
  | { readonly kind: "otherDefault"; readonly name: string }
  /** The member never changes. */
  | { readonly kind: "fixed"; readonly field: "value" | "preemptionPolicy"; readonly is: string };

/** The greatest number of priority classes, so that all of them can be listed at once. */
export const PRIORITY_CLASSES_MAX = 1_000;

/** Why a change of a class is refused before anything is written. Null: it is not. */
export function changeRefusal(
  before: PriorityClassRecord,
  change: PriorityClassChange,
): Exclude<PriorityClassOutcome, { readonly kind: "done" }> | null {
  const { value, preemptionPolicy, version } = change;
  if (version !== 0 && version !== before.version) return { kind: "stale" };
  if (value !== null && value !== before.value) return { kind: "fixed", field: "value", is: String(before.value) };
  if (preemptionPolicy !== null && preemptionPolicy !== before.preemptionPolicy) {
    return { kind: "fixed", field: "preemptionPolicy", is: before.preemptionPolicy };
  }
  return null;
}
