/** The growth of elastic gangs: members beyond their minimum. Others may take them, and the gangs run on without. */
import { firstWhere } from "../../../runtime/first-where.ts";
import { liveAdmission } from "../../job/job.ts";
import { memberCount } from "../../job/roles.ts";
import { addedMembers, type MemberCounts } from "../gang.ts";
import type { PlannedFrom } from "../plan-gang.ts";
import type { Victim } from "../preempt/running-gang.ts";
import type { PlannedVictim } from "../preemption.ts";
import type { Entry } from "./gang-lines.ts";
import type { Runners, RunningVictim } from "./runners.ts";

/**
 * The members that a gang keeps if others take all of its growth. Members of its last replica type alone are taken,
 * since only their number may change while it runs. Null: it has no growth, or gives up some already.
 */
export function leastKept({ gang, shape }: Entry, live: PlannedFrom): MemberCounts | null {
  const { elastic, roles } = shape.ask;
  const last = roles.at(-1);
  // A job that is set aside gives up nothing in parts: that would read its templates.
  if (!elastic || last === undefined || gang.shrinksTo !== undefined || gang.setAside !== undefined) return null;
  const count = live.members[last.role] ?? 0;
  return count > last.first ? { ...live.members, [last.role]: last.first } : null;
}

/** The same as `leastKept`, but only so many of its members are taken. */
function keptWithout({ shape }: Entry, live: PlannedFrom, taken: number): MemberCounts {
  const { role = "" } = shape.ask.roles.at(-1) ?? {};
  return { ...live.members, [role]: (live.members[role] ?? 0) - taken };
}

/** The two parts of an admission: the members that it keeps, and the others. */
export function splitAdmission(live: PlannedFrom, keeps: MemberCounts) {
  return {
    rest: { ...live, members: keeps },
    growth: { ...live, members: addedMembers(keeps, live.members) },
  };
}

/** The same victims, but with no more members of elastic gangs than needed. `fits`: the taker still fits with these. */
export function withLeastGrowth(
  found: readonly RunningVictim[],
  of: { readonly runners: Runners; readonly fits: (victims: readonly RunningVictim[]) => boolean },
): readonly RunningVictim[] {
  let victims = found;
  const whole = new Set(found.flatMap(({ gang }) => (gang.isGrowth === true ? [] : [gang.entry])));
  for (const victim of found) {
    const { entry, isGrowth, admission } = victim.gang;
    const live = liveAdmission(entry.gang);
    if (isGrowth !== true || live === null || whole.has(entry)) continue;
    const others = victims;
    const withOnly = (taken: number): readonly RunningVictim[] => {
      const gang = of.runners.growth(entry, live, keptWithout(entry, live, taken));
      return others.map((one) => (one === victim ? { ...one, gang } : one));
    };
    const all = memberCount(admission.members);
    const least = firstWhere(1, all, (taken) => of.fits(withOnly(taken)));
    if (least < all) victims = withOnly(least);
  }
  return victims;
}

/** How many whole gangs are among some victims. */
export function wholeGangs(victims: readonly Victim[]): number {
  return victims.filter(({ gang }) => gang.isGrowth !== true).length;
}

/** The victims as a plan names them. A gang that gives way whole is named once, also if its growth was taken before. */
export function plannedVictims(victims: readonly RunningVictim[]): readonly PlannedVictim[] {
  const whole = new Set(victims.filter(({ gang }) => gang.isGrowth !== true).map(({ gang }) => gang.uid));
  return victims.filter(({ gang }) => gang.isGrowth !== true || !whole.has(gang.uid)).map(plannedVictim);
}

function plannedVictim({ gang, reason }: RunningVictim): PlannedVictim {
  const { entry, admission, uid: jobUid, isGrowth = false } = gang;
  const { members } = liveAdmission(entry.gang) ?? admission;
  const keeps = isGrowth ? { keeps: addedMembers(admission.members, members) } : {};
  return { jobUid, queue: entry.line.name, admission: admission.number, members, ...keeps, reason };
}
