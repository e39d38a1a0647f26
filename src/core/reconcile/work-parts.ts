/**
 * Gives members that have done their part of the work the next one. It serves users whose jobs have more to do than
 * they have pods, and whose jobs are admitted more than once: what has been done is not done again.
 */
import { memberOf, replicaKey, rolesOf } from "../job/roles.ts";
import type { GangAdmission, MemberEnd, ReplicaKey } from "../job/status.ts";
import type { KindRules } from "../kinds/kind-rules.ts";
import type { Slot } from "./arrange-gang.ts";
import { changeAdmission, type Draft, type Inputs } from "./decision-draft.ts";
import { endsOf } from "./kind-rules.ts";
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
  const members = (role: string) => slots.filter((slot) => slot.role === role);
  const returned = returnedKeys(of.admission);
  const started = [...parts].flatMap(([role, count]) => nextParts(members(role), { ends, parts: count, returned }));
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
  const parts = new Map(
    rolesOf(job.spec).map((role) => [
      role,
      rules.partsOf(job.spec, role) ?? job.spec.replicaSpecs[role]?.replicas ?? 0,
    ]),
  );
  // A job that was made smaller has fewer parts: what the others have done is no longer of use.
  const ends = new Map(
    [...endsOf(slots, { job, failures })].filter(([key]) => {
      const { role, index } = memberOf(key);
      return index < (parts.get(role) ?? 0);
    }),
  );
  const { ends: _before, ...status } = draft.status;
  draft.status = ends.size === 0 ? status : { ...status, ends: Object.fromEntries(ends) };
  return { ends, parts };
}

/** The parts that nobody does and nobody has done, for the members that have ended. */
function nextParts(
  slots: readonly Slot[],
  of: {
    readonly ends: ReadonlyMap<ReplicaKey, unknown>;
    readonly parts: number;
    readonly returned: ReadonlySet<ReplicaKey>;
  },
): readonly { readonly slot: Slot; readonly part: number }[] {
  const { ends, parts, returned } = of;
  const over = (slot: Slot) => ends.has(replicaKey(slot.role, slot.part));
  const free = slots.filter((slot) => over(slot) && !returned.has(slot.key));
  const taken = new Set(slots.filter((slot) => !over(slot)).map(({ part }) => part));
  const next: { readonly slot: Slot; readonly part: number }[] = [];
  for (let part = 0; part < parts && next.length < free.length; part++) {
    const slot = free[next.length];
    if (slot === undefined || taken.has(part) || ends.has(replicaKey(slot.role, part))) continue;
    next.push({ slot, part });
  }
  return next;
}
