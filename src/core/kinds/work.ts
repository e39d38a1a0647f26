/** Which part of the work of its replica type a member does. It serves kinds whose pods are named by their part. */
import type { Job } from "../job/job.ts";
import { replicaKey } from "../job/roles.ts";
import type { JobSpec } from "../job/spec.ts";
import type { Kind } from "./kind.ts";
import type { Work } from "./kind-rules.ts";

/** A job, or what is known of it. Without a status, its members do their first parts. */
export type WorkingJob = { readonly spec: Pick<JobSpec, "kindSpec" | "replicaSpecs"> } & Partial<Pick<Job, "status">>;

/** The part that a member does: its first one, or a later one after that has ended. Others than of rules: its index. */
export function partOf(
  { job, kind }: { readonly job: WorkingJob; readonly kind: Pick<Kind, "rules"> | undefined },
  role: string,
  member: number,
): number {
  const recorded = job.status?.attempts.parts?.[replicaKey(role, member)];
  if (recorded !== undefined) return recorded;
  return kind?.rules === undefined ? member : firstPart(kind.rules.workOf(job.spec, role), member);
}

/** The part with which a member begins. */
export function firstPart(work: Work, member: number): number {
  const group = groupOfMember(work, member);
  return group * work.parts + (member - group * work.members);
}

/** Members beyond those of all groups belong to the last one: a gang may just have got them. */
export function groupOfMember({ groups, members }: Work, member: number): number {
  return members === 0 ? 0 : Math.min(Math.floor(member / members), groups - 1);
}

export function groupOfPart({ parts }: Pick<Work, "parts">, part: number): number {
  return parts === 0 ? 0 : Math.floor(part / parts);
}
