/**
 * Gives members that have done their part of the work the next one. It serves users whose jobs have more to do than
 * they have pods, and whose jobs are admitted more than once: what has been done is not done again.
 */
import { replicaKey } from "../../job/roles.ts";
import type { GangAdmission, MemberEnd, ReplicaKey } from "../../job/status.ts";
import type { KindRules, Work } from "../../kinds/kind-rules.ts";
import { groupOfMember, partOf } from "../../kinds/work.ts";
import type { Slot } from "../arrange-gang.ts";
import { changeAdmission, type Draft, type Inputs } from "../decision-draft.ts";
import { returnedKeys, type SlotFailure } from "../member-ends.ts";
import { endsOf, isPartOf, partKey, worksOf } from "./kind-rules.ts";

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
  const { ends, works } = keepEnds(draft, inputs, { ...of, rules: kind.rules });
  const returned = returnedKeys(of.admission);
  const started = [...works].flatMap(([role, work]) => {
    const own = slots.filter((slot) => slot.role === role);
    const leaving = leavingParts(inputs, of.admission, { role, staying: own.length });
    return nextParts(own, { ends, work, returned, leaving });
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

/** Records how parts of the work have ended. Returns that, and how the work of each replica type is divided. */
export function keepEnds(
  draft: Draft,
  { job }: Pick<Inputs, "job">,
  { slots, failures, rules }: Omit<Working, "admission"> & { readonly rules: KindRules },
): { readonly ends: ReadonlyMap<ReplicaKey, MemberEnd>; readonly works: ReadonlyMap<string, Work> } {
  const works = worksOf({ rules, job });
  const ends = endsOf(slots, { rules, job, failures });
  const { ends: _before, attempts, ...status } = draft.status;
  const { failures: counts = {}, ...others } = attempts;
  const counted = Object.entries(counts).filter(isPartOf(works));
  draft.status = {
    ...status,
    attempts: { ...others, ...(counted.length === 0 ? {} : { failures: Object.fromEntries(counted) }) },
    ...(ends.size === 0 ? {} : { ends: Object.fromEntries(ends) }),
  };
  return { ends, works };
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
  { job, kind }: Pick<Inputs, "job" | "kind">,
  { members }: GangAdmission,
  { role, staying }: { readonly role: string; readonly staying: number },
): readonly number[] {
  const count = Math.max(0, (members[role] ?? 0) - staying);
  return Array.from({ length: count }, (_, at) => partOf({ job, kind }, role, staying + at));
}

type Doing = {
  readonly ends: ReadonlyMap<ReplicaKey, unknown>;
  readonly work: Work;
  readonly returned: ReadonlySet<ReplicaKey>;
  readonly leaving: readonly number[];
};

type Start = { readonly slot: Slot; readonly part: number };

/**
 * The parts that nobody does and nobody has done, for the members that have ended or whose part another one does. A
 * member does parts of its own group.
 */
function nextParts(slots: readonly Slot[], { ends, work, returned, leaving }: Doing): readonly Start[] {
  const doubles = doubleKeys(slots);
  const isFree = (slot: Slot) => ends.has(partKey(slot)) || doubles.has(slot.key);
  const free = slots.filter((slot) => isFree(slot) && !returned.has(slot.key));
  const taken = new Set([...slots.filter((slot) => !isFree(slot)).map(({ part }) => part), ...leaving]);
  const byGroup = Map.groupBy(free, ({ index }) => groupOfMember(work, index));
  return [...byGroup].flatMap(([group, members]) => {
    const from = group * work.parts;
    const next: Start[] = [];
    for (let part = from; part < from + work.parts && next.length < members.length; part++) {
      const slot = members[next.length];
      if (slot === undefined || taken.has(part) || ends.has(replicaKey(slot.role, part))) continue;
      next.push({ slot, part });
    }
    return next;
  });
}
