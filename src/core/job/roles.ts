import { compareText } from "../../runtime/compare-text.ts";
import { writeRanges } from "../../runtime/index-ranges.ts";
import type { Job } from "./job.ts";
import type { JobSpec } from "./spec.ts";
import type { Admission, JobStatus, MemberEnd, ReplicaKey } from "./status.ts";

const ROLE_ORDER = ["chief", "master", "launcher", "evaluator", "ps", "worker"];

/** The fixed order of replica types: chief, master, launcher, evaluator, ps, worker, then by name. */
export function compareRoles(a: string, b: string): number {
  const rank = (role: string) => {
    const at = ROLE_ORDER.indexOf(role.toLowerCase());
    return at < 0 ? ROLE_ORDER.length : at;
  };
  return rank(a) - rank(b) || compareText(a, b);
}

/** The replica types of a job, in the order of `compareRoles`. */
export function rolesOf(spec: JobSpec): readonly string[] {
  return Object.keys(spec.replicaSpecs).sort(compareRoles);
}

export function replicaKey(role: string, index: number): ReplicaKey {
  return `${role}/${index}`;
}

/** The replica type and the index that a key names. */
export function memberOf(key: ReplicaKey): { readonly role: string; readonly index: number } {
  const slash = key.lastIndexOf("/");
  return { role: key.slice(0, slash), index: Number(key.slice(slash + 1)) };
}

/** Leaders are admitted first: masters, chiefs and launchers, then parameter servers, then the rest. */
function memberRank(role: string): number {
  const name = role.toLowerCase();
  if (name === "master" || name === "chief" || name === "launcher") return 0;
  return name === "ps" ? 1 : 2;
}

/** The replica types in the order in which their members are admitted. */
export function memberOrder(spec: JobSpec): readonly string[] {
  return [...rolesOf(spec)].sort((a, b) => memberRank(a) - memberRank(b) || compareRoles(a, b));
}

/**
 * The first `count` members of a gang, as counts by replica type: leaders, then parameter servers, then the others by
 * index.
 */
export function firstMembers(spec: JobSpec, count: number): Readonly<Record<string, number>> {
  const members: Record<string, number> = {};
  let left = count;
  for (const role of memberOrder(spec)) {
    members[role] = Math.min(left, spec.replicaSpecs[role]?.replicas ?? 0);
    left -= members[role];
  }
  return members;
}

/** The members of an admission, by replica type and index. */
export function membersOf(
  spec: JobSpec,
  members: Readonly<Record<string, number>>,
): readonly { readonly role: string; readonly index: number }[] {
  return rolesOf(spec).flatMap((role) => Array.from({ length: members[role] ?? 0 }, (_, index) => ({ role, index })));
}

/** How many members of each type hold tokens: all but those that have ended and gave theirs back. */
export function holdingMembers({
  members,
  returned,
}: Pick<Admission, "members" | "returned">): Readonly<Record<string, number>> {
  if (returned === undefined) return members;
  return Object.fromEntries(
    Object.entries(members).map(([role, count]) => {
      return [role, count - (returned[role] ?? []).filter((index) => index < count).length];
    }),
  );
}

/** How many members of each type have not ended, and how many members have succeeded. */
export function membersByEnd({ members, ended = {} }: Pick<Admission, "members" | "ended">): {
  readonly left: Readonly<Record<string, number>>;
  readonly succeeded: number;
} {
  const left = { ...members };
  let succeeded = 0;
  for (const [key, end] of Object.entries(ended)) {
    const { role, index } = memberOf(key as ReplicaKey);
    if (index >= (members[role] ?? 0)) continue;
    left[role] = (left[role] ?? 0) - 1;
    if (end === "SUCCEEDED") succeeded += 1;
  }
  return { left, succeeded };
}

/** The number of pods of an admission. */
export function memberCount(members: Readonly<Record<string, number>>): number {
  return Object.values(members).reduce((sum, count) => sum + count, 0);
}

/**
 * The members of an admission that the job still has. Fewer than the admission's only after a scale-down, and while it
 * gives up members for another gang.
 */
export function keptMembers(
  { spec, status }: Pick<Job, "spec" | "status">,
  { number, members }: Pick<Admission, "number" | "members">,
): Readonly<Record<string, number>> {
  const keeps = status.shrink?.admission === number ? status.shrink.keeps : {};
  return Object.fromEntries(
    Object.entries(members).map(([role, count]) => {
      return [role, Math.min(count, spec.replicaSpecs[role]?.replicas ?? 0, keeps[role] ?? count)];
    }),
  );
}

/** The parts of the work of a replica type that have ended for good, by their numbers, such as `0,2-5`. */
export function endedParts({ ends = {} }: Pick<JobStatus, "ends">, role: string, end: MemberEnd): string {
  const numbers = Object.entries(ends).flatMap(([key, one]) => {
    const part = memberOf(key as ReplicaKey);
    return one === end && part.role === role ? [part.index] : [];
  });
  return writeRanges(numbers.sort((a, b) => a - b));
}
