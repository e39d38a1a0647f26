/** The growth of elastic gangs: members beyond their minimum. Others may take them, and the gangs run on without. */

import { firstWhere } from "../../../runtime/first-where.ts";
import { liveAdmission } from "../../job/job.ts";
import { memberCount } from "../../job/roles.ts";
import type { ReturnedMembers } from "../../job/status.ts";
import { addedMembers, type MemberCounts } from "../model/gang.ts";
import type { PlannedFrom } from "../model/plan-gang.ts";
import type { PlannedVictim } from "../model/preemption.ts";
import type { GangRecord, RunningAdmission, RunningVictim } from "../queues/records.ts";
import type { Victim } from "../victims/running-gang.ts";

/**
 * The members that a gang keeps if others take all of its growth. Members of its last replica type alone are taken,
 * since only their number may change while it runs. Null: it has no growth, or gives up some already. A gang has none
 * once members have ended and gave their tokens back: without its growth it might seem to have done all its work.
 */
export function leastKept({ facts, shape }: GangRecord, live: PlannedFrom): MemberCounts | null {
  const { elastic, roles } = shape.ask;
  const last = roles.at(-1);
  // A job that is set aside gives up nothing in parts: that would read its templates.
  if (!elastic || last === undefined || facts.shrinksTo !== undefined || facts.setAside !== undefined) return null;
  if (live.returned !== undefined) return null;
  const count = live.members[last.role] ?? 0;
  return count > last.first ? { ...live.members, [last.role]: last.first } : null;
}

/** The same as `leastKept`, but only so many of its members are taken. */
function keptWithout({ shape }: GangRecord, live: PlannedFrom, taken: number): MemberCounts {
  const { role = "" } = shape.ask.roles.at(-1) ?? {};
  return { ...live.members, [role]: (live.members[role] ?? 0) - taken };
}

/** The two parts of an admission: the members that it keeps, and the others. */
export function splitAdmission(live: PlannedFrom, keeps: MemberCounts) {
  const growth = { ...live, members: addedMembers(keeps, live.members) };
  const { returned } = live;
  return {
    rest: { ...live, members: keeps },
    growth: returned === undefined ? growth : { ...growth, returned: withoutFirst(returned, keeps) },
  };
}

/** Those of some members that come after the first ones, which are left out, counted from there. */
function withoutFirst(returned: ReturnedMembers, first: MemberCounts): ReturnedMembers {
  return Object.fromEntries(
    Object.entries(returned).map(([role, indexes]) => {
      return [role, indexes.map((index) => index - (first[role] ?? 0)).filter((index) => index >= 0)];
    }),
  );
}

/**
 * The same victims, but with no more members of elastic gangs than needed. `fits`: the preemptor still fits with these.
 */
export function withLeastGrowth(
  found: readonly RunningVictim[],
  of: {
    readonly runningAdmissions: {
      readonly growth: (queued: GangRecord, live: PlannedFrom, keeps: MemberCounts) => RunningAdmission;
    };
    readonly fits: (victims: readonly RunningVictim[]) => boolean;
  },
): readonly RunningVictim[] {
  let victims = found;
  const whole = new Set(found.flatMap(({ gang }) => (gang.isGrowth === true ? [] : [gang.gang])));
  for (const victim of found) {
    const { gang: queued, isGrowth, admission } = victim.gang;
    const live = liveAdmission(queued.facts);
    if (isGrowth !== true || live === null || whole.has(queued)) continue;
    const others = victims;
    const withOnly = (taken: number): readonly RunningVictim[] => {
      const gang = of.runningAdmissions.growth(queued, live, keptWithout(queued, live, taken));
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

/**
 * The victims as a plan names them. A gang that is preempted whole is named once, also if its growth was taken before.
 */
export function plannedVictims(victims: readonly RunningVictim[]): readonly PlannedVictim[] {
  const whole = new Set(victims.filter(({ gang }) => gang.isGrowth !== true).map(({ gang }) => gang.uid));
  return victims.filter(({ gang }) => gang.isGrowth !== true || !whole.has(gang.uid)).map(plannedVictim);
}

function plannedVictim({ gang, reason }: RunningVictim): PlannedVictim {
  const { gang: queued, admission, uid: jobUid, isGrowth = false } = gang;
  const { members } = liveAdmission(queued.facts) ?? admission;
  const keeps = isGrowth ? { keeps: addedMembers(admission.members, members) } : {};
  return { jobUid, queue: queued.gangQueue.name, admission: admission.number, members, ...keeps, reason };
}
