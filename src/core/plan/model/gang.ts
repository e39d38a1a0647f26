import { compareRoles } from "../../job/roles.ts";
import type { Resources } from "../../pods/resources.ts";
import type { Ask, AskMembers, PodClass } from "./ask.ts";

/** Some members of one replica type. */
export type MemberGroup = PodClass & { readonly role: string; readonly count: number };

/** Numbers of members by replica type. */
export type MemberCounts = Readonly<Record<string, number>>;

/** The members of a gang as groups, in the order of `compareRoles`. Omits replica types without a member. */
export function memberGroups({ roles, podClasses }: AskMembers, members: MemberCounts): readonly MemberGroup[] {
  return inOrder(roles).flatMap(({ role, podClass: place }) => {
    const count = members[role] ?? 0;
    const podClass = podClasses[place];
    return count <= 0 || podClass === undefined ? [] : [{ ...podClass, role, count }];
  });
}

function inOrder(roles: Ask["roles"]): Ask["roles"] {
  return [...roles].sort((a, b) => compareRoles(a.role, b.role));
}

/** The members that `after` has more than `before`. A replica type that has fewer counts as 0. */
export function addedMembers(before: MemberCounts, after: MemberCounts): MemberCounts {
  return Object.fromEntries(
    Object.entries(after).map(([role, count]) => [role, Math.max(0, count - (before[role] ?? 0))]),
  );
}

/** Whole units of a resource that one pod gets: what it requests in thousandths, rounded up to whole devices. */
export function wholeUnits(requests: Resources, resource: string): number {
  return Math.ceil((requests[resource] ?? 0) / 1000);
}

export function podCount(groups: readonly MemberGroup[]): number {
  return groups.reduce((sum, group) => sum + group.count, 0);
}
