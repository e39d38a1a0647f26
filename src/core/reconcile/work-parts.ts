/**
 * Gives members that have done their part of the work the next one. It serves users whose jobs have more to do than
 * they have pods, and whose jobs are admitted more than once: what has been done is not done again.
 */
import { partOf, replicaKey } from "../job/roles.ts";
import type { GangAdmission, MemberEnd, ReplicaKey } from "../job/status.ts";
import type { KindRules } from "../kinds/kind-rules.ts";
import type { Slot } from "./arrange-gang.ts";
import { changeAdmission, type Draft, type Inputs } from "./decision-draft.ts";
import { endsOf, isPartOf, partCounts, partKey } from "./kind-rules.ts";
import { returnedKeys, type SlotFailure } from "./member-ends.ts";

type Working = {
  readonly admission: GangAdmission;
  readonly slots: readonly Slot[];
  readonly failures: readonly SlotFailure[];
};

/**
 * Keeps how parts of the work have ended, for this admission and later ones, and starts members whose part has ended on
 * the first parts that nobody does. Members that gave their tokens back do not start. Returns the admission without the
 * ends of those that do.
 */
export function goOnWithWork(draft: Draft, inputs: Inputs, of: Working): GangAdmission {
  const { kind, nowMs } = inputs;
  if (kind.rules === undefined) return of.admission;
  const { slots } = of;
  const { ends, parts } = keepEnds(draft, inputs, { ...of, rules: kind.rules });
  const returned = returnedKeys(of.admission);
  const started = [...parts].flatMap(([role, count]) => {
    const own = slots.filter((slot) => slot.role === role);
    const leaving = leavingParts(inputs.job, of.admission, { role, staying: own.length });
    return nextParts(own, { ends, parts: count, returned, leaving });
  });
  if (started.length === 0) return of.admission;
  const { attempts } = draft.status;
  const all = <T>(value: (one: (typeof started)[number]) => T) =>
    Object.fromEntries(started.map((one) => [one.slot.key, value(one)]));
  draft.status = {
    ...draft.status,
    attempts: {
      ...attempts,
      parts: { ...attempts.parts, ...all(({ part }) => part) },
      byReplica: { ...attempts.byReplica, ...all(({ slot }) => slot.attempt + 1) },
    },
  };
  draft.recheckAtMs.push(nowMs);
  const going = new Set<string>(started.map(({ slot }) => slot.key));
  const { ended = {}, ...rest } = of.admission;
  const left = Object.entries(ended).filter(([key]) => !going.has(key));
  const admission = left.length === 0 ? rest : { ...rest, ended: Object.fromEntries(left) };
  changeAdmission(draft, admission);
  return admission;
}

/** Records how parts of the work have ended. Returns that, and how many parts each replica type has. */
export function keepEnds(
  draft: Draft,
  { job }: Pick<Inputs, "job">,
  { slots, failures, rules }: Omit<Working, "admission"> & { readonly rules: KindRules },
): { readonly ends: ReadonlyMap<ReplicaKey, MemberEnd>; readonly parts: ReadonlyMap<string, number> } {
  const parts = partCounts({ rules, job });
  const ends = endsOf(slots, { rules, job, failures });
  const { ends: _before, attempts, ...status } = draft.status;
  const { failures: counts = {}, ...others } = attempts;
  const counted = Object.entries(counts).filter(isPartOf(parts));
  draft.status = {
    ...status,
    attempts: { ...others, ...(counted.length === 0 ? {} : { failures: Object.fromEntries(counted) }) },
    ...(ends.size === 0 ? {} : { ends: Object.fromEntries(ends) }),
  };
  return { ends, parts };
}

/**
 * Members that wait for another part: another member does theirs. That happens to a member that comes to a gang which
 * had fewer, and has done or begun what was left.
 */
export function doubleKeys(slots: readonly Slot[]): ReadonlySet<ReplicaKey> {
  const open = slots.filter(({ ended }) => ended === null);
  const doubles = [...Map.groupBy(open, partKey).values()].flatMap((same) => {
    // One with a pod goes on; of those without, the one that was there first.
    const first = same.find(({ pod, stale }) => pod !== null || stale.length > 0) ?? same[0];
    return same.filter((slot) => slot !== first);
  });
  return new Set(doubles.map(({ key }) => key));
}

/** The parts of members that the gang gives up, whose pods may still run. */
function leavingParts(
  { status }: Inputs["job"],
  { members }: GangAdmission,
  { role, staying }: { readonly role: string; readonly staying: number },
): readonly number[] {
  const count = Math.max(0, (members[role] ?? 0) - staying);
  return Array.from({ length: count }, (_, at) => partOf(status.attempts, role, staying + at));
}

/** The parts that nobody does and nobody has done, for the members that have ended or whose part another one does. */
function nextParts(
  slots: readonly Slot[],
  of: {
    readonly ends: ReadonlyMap<ReplicaKey, unknown>;
    readonly parts: number;
    readonly returned: ReadonlySet<ReplicaKey>;
    readonly leaving: readonly number[];
  },
): readonly { readonly slot: Slot; readonly part: number }[] {
  const { ends, parts, returned, leaving } = of;
  const doubles = doubleKeys(slots);
  const isFree = (slot: Slot) => ends.has(partKey(slot)) || doubles.has(slot.key);
  const free = slots.filter((slot) => isFree(slot) && !returned.has(slot.key));
  const taken = new Set([...slots.filter((slot) => !isFree(slot)).map(({ part }) => part), ...leaving]);
  const next: { readonly slot: Slot; readonly part: number }[] = [];
  for (let part = 0; part < parts && next.length < free.length; part++) {
    const slot = free[next.length];
    if (slot === undefined || taken.has(part) || ends.has(replicaKey(slot.role, part))) continue;
    next.push({ slot, part });
  }
  return next;
}
