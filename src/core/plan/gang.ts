import type { Json, JsonObject } from "../../runtime/json.ts";
import { objectAt } from "../../runtime/json.ts";
import { rolesOf } from "../job/roles.ts";
import type { JobSpec } from "../job/spec.ts";
import { podRequests, type Resources } from "../pods/resources.ts";

/** Pods that ask for the same and may run on the same nodes: so many members of one replica type. */
export type MemberGroup = {
  readonly role: string;
  readonly podSpec: JsonObject;
  readonly requests: Resources;
  readonly count: number;
};

type Members = Readonly<Record<string, number>>;

/** The members of a gang as groups, in the order of the roles; replica types without a member are left out. */
export function memberGroups(spec: JobSpec, members: Members): readonly MemberGroup[] {
  return rolesOf(spec).flatMap((role) => {
    const count = members[role] ?? 0;
    const replica = spec.replicaSpecs[role];
    if (replica === undefined || count <= 0) return [];
    const podSpec = objectAt(replica.template, "spec");
    return [{ role, podSpec, requests: podRequests(podSpec), count }];
  });
}

/** All that a fit looks at, as a value to compare: groups that have it in common are one kind of pods. */
export function kindOf({ podSpec, requests }: MemberGroup): Json {
  const { nodeSelector = null, affinity = null, tolerations = null } = podSpec;
  return [nodeSelector, affinity, tolerations, requests];
}

/** All members of a job, by replica type. */
export function allMembers(spec: JobSpec): Members {
  return Object.fromEntries(rolesOf(spec).map((role) => [role, spec.replicaSpecs[role]?.replicas ?? 0]));
}

/** The members that `after` has and `before` has not; replica types never shrink by it. */
export function addedMembers(before: Members, after: Members): Members {
  return Object.fromEntries(
    Object.entries(after).map(([role, count]) => [role, Math.max(0, count - (before[role] ?? 0))]),
  );
}

export function podCount(groups: readonly MemberGroup[]): number {
  return groups.reduce((sum, group) => sum + group.count, 0);
}

/** Whole units of a resource that the groups ask for together; parts of a unit are rounded up for each pod, as devices are handed out. */
export function wholeUnits(groups: readonly MemberGroup[], resource: string): number {
  return groups.reduce((sum, group) => sum + group.count * Math.ceil((group.requests[resource] ?? 0) / 1000), 0);
}
