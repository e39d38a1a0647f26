/** The order of a run: rounds of groups, so that any number of calls has a share of each. */
import type { Style } from "./plan.ts";

export type GroupKind = "together" | "bytes" | "alone" | "misuse";

export type Group = {
  readonly kind: GroupKind;
  /** The number of its first call. */
  readonly from: number;
  readonly calls: number;
  readonly styles: readonly Style[];
};

const GROUPS: readonly Omit<Group, "from">[] = [
  { kind: "together", calls: 340, styles: ["mutated", "mutated", "valid", "valid", "generated"] },
  { kind: "bytes", calls: 100, styles: ["bytes"] },
  { kind: "alone", calls: 40, styles: ["mutated", "mutated", "valid", "generated"] },
  { kind: "misuse", calls: 20, styles: ["valid"] },
];

/** The groups of so many calls. */
export function schedule(calls: number): readonly Group[] {
  const groups: Group[] = [];
  for (let from = 0; from < calls; ) {
    const next = GROUPS[groups.length % GROUPS.length];
    if (next === undefined) break;
    const size = Math.min(next.calls, calls - from);
    groups.push({ ...next, from, calls: size });
    from += size;
  }
  return groups;
}
