/** Says which pods of a JobSet may start: groups may wait for others, and pods for the first one of their child job. */
import { minOf } from "../../../runtime/lists.ts";
import { mayStartIn } from "../batch/judge-batch.ts";
import type { GangState, MemberState } from "../kind-rules.ts";
import { groupOfPart } from "../work.ts";
import { type ChildJob, childJobs, deadlineMs, hasEnded, isReady } from "./child-jobs.ts";
import { ownTopology } from "./exclusive-nodes.ts";
import type { ChildGroup, JobSetSpec } from "./jobset-spec.ts";

/** True if it matters when the members of a group could start. */
export function startsInOrder({ inOrder, groups }: JobSetSpec): boolean {
  return (
    inOrder ||
    groups.some(({ dependsOn, activeDeadlineSeconds }) => dependsOn.length > 0 || activeDeadlineSeconds !== null)
  );
}

/** When the next deadline of a child job passes. Null: none does. */
export function nextDeadlineMs({ groups }: JobSetSpec, gang: GangState): number | null {
  const times = groups.flatMap((group) => deadlineMs(group, gang) ?? []);
  return times.length === 0 ? null : minOf(times);
}

/** True for members that may start now. A group that could start once may always: its child jobs exist by then. */
export function mayStartInSet(set: JobSetSpec, gang: GangState): (member: MemberState) => boolean {
  const jobs = childJobs(set, gang);
  const byGroup = Map.groupBy(jobs, ({ group }) => group.name);
  const open = new Map<string, Starts>();
  for (const [at, group] of set.groups.entries()) {
    const before = set.inOrder ? set.groups.slice(0, at).map(({ name }) => ({ name, status: "Ready" as const })) : [];
    const waits = [...before, ...group.dependsOn].some(({ name, status }) => {
      const all = byGroup.get(name) ?? [];
      return !(status === "Complete" ? all.every(hasSucceeded) : all.every((job) => isReady(job) || hasEnded(job)));
    });
    if (waits && gang.begunMs[group.name] === undefined) continue;
    open.set(group.name, { group, ofJobs: (byGroup.get(group.name) ?? []).map(startsIn) });
  }
  return (member) => {
    const starts = open.get(member.role);
    return starts?.ofJobs[groupOfPart(starts.group, member.index)]?.(member) === true;
  };
}

/** Which pods of each child job of a group may start. */
type Starts = { readonly group: ChildGroup; readonly ofJobs: readonly ((member: MemberState) => boolean)[] };

function startsIn(job: ChildJob): (member: MemberState) => boolean {
  if (hasEnded(job)) return () => false;
  const mayStart = mayStartIn(job.group.batch, job.state);
  const mayFollow = followsIn(job);
  return (member) => mayStart(member) && mayFollow(member);
}

function hasSucceeded({ verdict }: ChildJob): boolean {
  return verdict?.kind === "succeeded";
}

/**
 * Pods of a child job with a topology domain for itself start once the node of the first one says which that is. Once
 * that pod has ended, the others do not wait for it: their affinity keeps them with those that run.
 */
function followsIn({ group, state }: ChildJob): (member: MemberState) => boolean {
  const domain = ownTopology(group);
  if (domain === null) return () => true;
  const isFirst = ({ index }: { readonly index: number }) => index === 0;
  const isKnown = state.members.find(isFirst)?.nodeLabels?.[domain] !== undefined || state.ends.some(isFirst);
  return ({ index }) => isKnown || index % group.parts === 0;
}
