/** The child jobs of a JobSet, which exist only as numbers: how each is doing by the rules of a batch Job. */
import { type BatchState, judgeBatch } from "../batch/judge-batch.ts";
import type { GangState, MemberState, RuleVerdict } from "../kind-rules.ts";
import { groupOfPart } from "../work.ts";
import type { ChildGroup, JobSetSpec } from "./jobset-spec.ts";

const DEADLINE = { code: "DeadlineExceeded", message: "Job was active longer than specified deadline" };

/** One child job. */
export type ChildJob = {
  readonly group: ChildGroup;
  /** Within its group. */
  readonly index: number;
  readonly state: BatchState;
  readonly verdict: RuleVerdict;
};

export function childName(jobName: string, group: string, index: number): string {
  return `${jobName}-${group}-${index}`;
}

/** The name of a pod, which is its host name too. */
export function childPodName(
  jobName: string,
  { group, job, pod }: { readonly group: string; readonly job: number; readonly pod: number },
): string {
  return `${childName(jobName, group, job)}-${pod}`;
}

/** The child jobs of all groups, in their order. Takes time in the number of members. */
export function childJobs({ groups }: JobSetSpec, gang: GangState): readonly ChildJob[] {
  const byRole = {
    members: Map.groupBy(gang.members, ({ role }) => role),
    ends: Map.groupBy(gang.ends, ({ role }) => role),
    partFailures: Map.groupBy(gang.partFailures, ({ role }) => role),
    groupFailures: Map.groupBy(gang.groupFailures, ({ role }) => role),
  };
  return groups.flatMap((group) => {
    const inJob = <T extends { readonly index: number }>(of: ReadonlyMap<string, readonly T[]>) =>
      byJob(of.get(group.name) ?? [], group);
    const members = inJob(byRole.members);
    const ends = inJob(byRole.ends);
    const partFailures = inJob(byRole.partFailures);
    const groupFailures = inJob(byRole.groupFailures);
    return Array.from({ length: group.jobs }, (_, index): ChildJob => {
      const state: BatchState = {
        members: members.get(index) ?? [],
        ends: ends.get(index) ?? [],
        failures: (partFailures.get(index) ?? []).reduce((sum, { count }) => sum + count, 0),
        groupFailures: groupFailures.get(index) ?? [],
      };
      return { group, index, state, verdict: pastDeadline(group, gang) ?? judgeBatch(group.batch, state) };
    });
  });
}

/** These by the child job of their part, with the number that the part has in it. */
function byJob<T extends { readonly index: number }>(all: readonly T[], group: ChildGroup): ReadonlyMap<number, T[]> {
  const jobs = new Map<number, T[]>();
  for (const one of all) {
    const job = groupOfPart(group, one.index);
    const own = { ...one, index: one.index - job * group.parts };
    const list = jobs.get(job);
    if (list === undefined) jobs.set(job, [own]);
    else list.push(own);
  }
  return jobs;
}

/** Null for a child job without a deadline, or before it. */
function pastDeadline(group: ChildGroup, gang: GangState): RuleVerdict {
  const atMs = deadlineMs(group, gang);
  return atMs !== null && gang.nowMs >= atMs ? { kind: "failed", ...DEADLINE } : null;
}

/** When the deadline of a group's child jobs passes, which counts from their start. Null: never, as far as is known. */
export function deadlineMs({ name, activeDeadlineSeconds }: ChildGroup, { begunMs }: GangState): number | null {
  const sinceMs = begunMs[name];
  return sinceMs === undefined || activeDeadlineSeconds === null ? null : sinceMs + activeDeadlineSeconds * 1000;
}

export function hasEnded({ verdict }: ChildJob): boolean {
  return verdict?.kind === "succeeded" || verdict?.kind === "failed";
}

/** Source: JobSet's `jobReady`, which counts pods that are ready and pods that have succeeded. */
export function isReady({ group, state }: ChildJob): boolean {
  const ready = state.members.filter((member: MemberState) => member.ready).length;
  return ready + state.ends.filter(({ end }) => end === "SUCCEEDED").length >= group.pods;
}
