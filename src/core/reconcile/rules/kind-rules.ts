/**
 * Asks a kind with rules of its own what a failed pod does, and when its job ends. It serves users whose manifests say
 * themselves what counts as a failure and as a success, such as a batch Job.
 */
import type { Job } from "../../job/job.ts";
import { memberOf, replicaKey, rolesOf } from "../../job/roles.ts";
import type { Attempts, GangAdmission, MemberEnd, ReplicaKey } from "../../job/status.ts";
import type {
  FailureAction,
  GangState,
  GroupFailure,
  KindRules,
  MemberState,
  PartEnd,
  Work,
} from "../../kinds/kind-rules.ts";
import { groupOfPart } from "../../kinds/work.ts";
import type { PodFailure } from "../../pods/read/failure.ts";
import { containerRestarts, hasEnded, hasEndedItself, type PodView } from "../../pods/read/pod-view.ts";
import type { Slot } from "../arrange-gang.ts";
import { countSystem } from "../count-system.ts";
import type { Inputs } from "../decision-draft.ts";
import type { SlotFailure } from "../member-ends.ts";

/** What a failed pod does by the rules of its kind. */
export function actionOf(
  rules: KindRules,
  { slot, pod, failure }: Pick<SlotFailure, "slot" | "pod" | "failure">,
  { job }: Pick<Inputs, "job">,
): FailureAction {
  return rules.onFailure({
    spec: job.spec,
    role: slot.role,
    index: slot.part,
    name: pod.name,
    failures: job.status.attempts.failures?.[partKey(slot)] ?? 0,
    lost: failure.lost,
    exits: [...pod.containers, ...pod.initContainers].flatMap(({ name, terminated }) =>
      terminated === null ? [] : [{ container: name, exitCode: terminated.exitCode }],
    ),
    conditions: pod.conditions,
  });
}

/** The part of the work that a member does. */
export function partKey({ role, part }: Pick<Slot, "role" | "part">): ReplicaKey {
  return replicaKey(role, part);
}

/** The failure of a pod that ran and that somebody else deletes. Gangway deletes no such pod of a live member. */
export function deletedFailure(pod: PodView): PodFailure | null {
  if (!pod.deleting || pod.phase !== "Running") return null;
  const message = `pod ${pod.name} was deleted while it ran`;
  const end = { container: null, exitCode: null, lost: false, permanent: false, cleanup: false };
  return { code: "PodDeleted", kind: "USER", message, ...end };
}

/** What is known of a gang beside its slots. `attempts`: after the failures of this pass were counted. */
type Known = {
  readonly rules: KindRules;
  readonly job: Pick<Job, "name" | "spec" | "status">;
  readonly admission: Pick<GangAdmission, "begunMs">;
  readonly nowMs: number;
  readonly attempts: Attempts;
  readonly failures: readonly SlotFailure[];
};

/** A gang as its kind sees it. */
export function gangState(slots: readonly Slot[], known: Known): GangState {
  const { rules, job, admission, nowMs, attempts, failures } = known;
  const failed = new Set(failures.map(({ slot }) => slot.key));
  return {
    jobName: job.name,
    spec: job.spec,
    nowMs,
    members: slots.map((slot) => memberState(slot, failed.has(slot.key))),
    ends: inOrder(job, endsOf(slots, { rules, job, failures })),
    failures: attempts.user,
    partFailures: Object.entries(attempts.failures ?? {}).map(([key, count]) => {
      return { ...memberOf(key as ReplicaKey), count };
    }),
    groupFailures: failures.flatMap(groupFailure),
    begunMs: admission.begunMs ?? {},
    restarts: attempts.restarts?.counted ?? 0,
  };
}

function groupFailure({ slot, action }: SlotFailure): readonly GroupFailure[] {
  if (action?.kind !== "endGroup") return [];
  return [{ role: slot.role, index: slot.part, code: action.code, message: action.message }];
}

function memberState({ role, part, pod, ended }: Slot, hasFailed: boolean): MemberState {
  const active = pod !== null && !pod.deleting && !hasEnded(pod) && !hasFailed && ended === null;
  return {
    role,
    index: part,
    active,
    running: active && pod.phase === "Running",
    ready: active && pod.phase === "Running" && pod.ready,
    nodeLabels: active ? (pod.nodeLabels ?? null) : null,
    restarts: pod === null ? 0 : containerRestarts(pod),
  };
}

/** How the work of each replica type is divided. */
export function worksOf({
  rules,
  job,
}: {
  readonly rules: KindRules;
  readonly job: Pick<Job, "spec">;
}): ReadonlyMap<string, Work> {
  return new Map(Object.keys(job.spec.replicaSpecs).map((role) => [role, rules.workOf(job.spec, role)] as const));
}

/** True for a part that the work has. A job that was made smaller has fewer: what became of others is of no use. */
export function isPartOf(works: ReadonlyMap<string, Work>): (entry: readonly [string, unknown]) => boolean {
  return ([key]) => {
    const { role, index } = memberOf(key as ReplicaKey);
    const { groups = 0, parts = 0 } = works.get(role) ?? {};
    return index < groups * parts;
  };
}

/** How parts of the work have ended for good: by the record, and by what is seen now. */
export function endsOf(
  slots: readonly Slot[],
  of: Pick<Known, "rules" | "failures"> & { readonly job: Pick<Job, "spec" | "status"> },
): ReadonlyMap<ReplicaKey, MemberEnd> {
  const { rules, job, failures } = of;
  const ends = new Map(Object.entries(job.status.ends ?? {}) as [ReplicaKey, MemberEnd][]);
  for (const slot of slots) {
    const end = slot.ended ?? successNow(slot);
    if (end !== null) ends.set(partKey(slot), end);
  }
  for (const { slot, retried } of failures) if (!retried) ends.set(partKey(slot), "FAILED");
  return new Map([...ends].filter(isPartOf(worksOf({ rules, job }))));
}

function successNow({ pod }: Pick<Slot, "pod">): MemberEnd | null {
  return pod?.phase === "Succeeded" && hasEndedItself(pod) ? "SUCCEEDED" : null;
}

function inOrder({ spec }: Pick<Job, "spec">, ends: ReadonlyMap<ReplicaKey, MemberEnd>): readonly PartEnd[] {
  const roles = rolesOf(spec);
  const all = [...ends].map(([key, end]) => ({ ...memberOf(key), end }));
  return all.sort((a, b) => roles.indexOf(a.role) - roles.indexOf(b.role) || a.index - b.index);
}

/**
 * Counts the failures of a pass by the rules of the kind: each raises the attempt of its member, and the kind says how
 * long the member waits. Those of the platform that no rule counts are failures of the system.
 */
export function countByRules(
  rules: KindRules,
  slots: readonly Slot[],
  { failures, inputs }: { readonly failures: readonly SlotFailure[]; readonly inputs: Inputs },
): Attempts {
  const { job, nowMs } = inputs;
  const { attempts } = job.status;
  const isCounted = ({ action }: SlotFailure) => {
    return action?.kind !== "restartGang" && (action?.kind !== "retry" || action.counts);
  };
  const counting = failures.filter(isCounted);
  const uncounted = failures.filter((one) => !isCounted(one));
  const succeeds = slots.some((slot) => slot.ended === null && successNow(slot) !== null);
  const inRow = (succeeds ? 0 : (attempts.inRow ?? 0)) + failures.length;
  const raised = failures.filter(({ retried }) => retried).map(({ slot }) => slot);
  const counts = counting.map(({ slot }) => {
    return [partKey(slot), (attempts.failures?.[partKey(slot)] ?? 0) + 1] as const;
  });
  const counted: Record<string, number> = { ...attempts.failures, ...Object.fromEntries(counts) };
  const works = worksOf({ rules, job });
  const inGroups = failuresByGroup(counted, works);
  const times = raised.map((slot) => {
    const { role } = slot;
    const failed = counted[partKey(slot)] ?? 1;
    const failedInGroup = inGroups.get(groupKey(role, slot.part, works)) ?? failed;
    return [slot.key, nowMs + rules.retryDelayMs({ spec: job.spec, role, inRow, failed, failedInGroup })] as const;
  });
  const { inRow: _before, ...rest } = attempts;
  return {
    ...rest,
    ...countSystem(uncounted, inputs),
    user: attempts.user + counting.length,
    byReplica: { ...attempts.byReplica, ...Object.fromEntries(raised.map(({ key, attempt }) => [key, attempt + 1])) },
    notBeforeMs: { ...attempts.notBeforeMs, ...Object.fromEntries(times) },
    ...(counts.length === 0 ? {} : { failures: counted }),
    ...(inRow === 0 ? {} : { inRow }),
  };
}

/** The group of a part of the work. */
function groupKey(role: string, part: number, works: ReadonlyMap<string, Work>): string {
  return `${role}/${groupOfPart(works.get(role) ?? { parts: 0 }, part)}`;
}

function failuresByGroup(
  counted: Readonly<Record<string, number>>,
  works: ReadonlyMap<string, Work>,
): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const [key, count] of Object.entries(counted)) {
    const { role, index } = memberOf(key as ReplicaKey);
    const group = groupKey(role, index, works);
    sums.set(group, (sums.get(group) ?? 0) + count);
  }
  return sums;
}
