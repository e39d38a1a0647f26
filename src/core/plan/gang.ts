import type { Json, JsonObject } from "../../runtime/json.ts";
import { objectAt } from "../../runtime/json.ts";
import { rolesOf } from "../job/roles.ts";
import type { JobSpec } from "../job/spec.ts";
import { podRequests, type Resources } from "../pods/resources.ts";

/** Some members of one replica type. Their pods request the same resources and may run on the same nodes. */
export type MemberGroup = {
  readonly role: string;
  readonly podSpec: JsonObject;
  readonly requests: Resources;
  readonly count: number;
};

/** Numbers of members by replica type. */
export type MemberCounts = Readonly<Record<string, number>>;

/** The members of a gang as groups, in the order of the roles. Omits replica types without a member. */
export function memberGroups(spec: JobSpec, members: MemberCounts): readonly MemberGroup[] {
  return rolesOf(spec).flatMap((role) => {
    const count = members[role] ?? 0;
    if (count <= 0) return [];
    const podSpec = objectAt(spec.replicaSpecs[role]?.template, "spec");
    return [{ role, podSpec, requests: podRequests(podSpec), count }];
  });
}

/** Everything of a group's pods that a fit depends on. Groups with equal values are interchangeable. */
export function fitKeyOf({ podSpec, requests }: MemberGroup): Json {
  const { nodeSelector = null, affinity = null, tolerations = null } = podSpec;
  return [nodeSelector, affinity, tolerations, requests];
}

/** All members of a job, by replica type. */
export function allMembers(spec: JobSpec): MemberCounts {
  return Object.fromEntries(rolesOf(spec).map((role) => [role, spec.replicaSpecs[role]?.replicas ?? 0]));
}

/** The members that `after` has more than `before`. A replica type that has fewer counts as 0. */
export function addedMembers(before: MemberCounts, after: MemberCounts): MemberCounts {
  return Object.fromEntries(
    Object.entries(after).map(([role, count]) => [role, Math.max(0, count - (before[role] ?? 0))]),
  );
}

export function podCount(groups: readonly MemberGroup[]): number {
  return groups.reduce((sum, group) => sum + group.count, 0);
}

/** Whole units of a resource that the groups request together. Rounds up for each pod: a pod gets whole devices. */
export function wholeUnits(groups: readonly MemberGroup[], resource: string): number {
  return groups.reduce((sum, group) => sum + group.count * Math.ceil((group.requests[resource] ?? 0) / 1000), 0);
}
