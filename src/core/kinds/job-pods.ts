/** The pods of a job one by one, for users who ask where each runs and what each waits for. */
import { cutText } from "../../runtime/cut-text.ts";
import { currentAdmission, type Job } from "../job/job.ts";
import { placesIn } from "../job/placement/placement.ts";
import { type PlannedNodes, podPlaces, whyOffPlan } from "../job/placement/pod-places.ts";
import { PROBLEM_CHARS_MAX } from "../job/pod-problems.ts";
import { membersOf, replicaKey } from "../job/roles.ts";
import type { Admission, PodProblem, ReplicaKey } from "../job/status.ts";
import { PODS_TOLD_MAX, type TaskPhase } from "../job/task-info.ts";
import { podFacts } from "../pods/read/pod-facts.ts";
import type { PodView } from "../pods/read/pod-view.ts";
import { PENDING_LIMITS } from "../pods/read/read-pending.ts";
import { phaseOf, readPod } from "../pods/read/read-pod.ts";
import type { Kind } from "./kind.ts";
import { podPhase } from "./pod-info.ts";
import { podName } from "./pod-name.ts";

/** A pod as it is shown. */
export type ShownPod = {
  readonly name: string;
  readonly replicaType: string;
  readonly index: number;
  readonly attempt: number;
  /** As in Kubernetes, or `Terminating`, `NotCreated` or `Deleted`. */
  readonly phase: string;
  readonly node: string;
  readonly ready: boolean;
  readonly restarts: number;
  readonly reason: string;
  readonly message: string;
  /** Null: not known. */
  readonly createTimeMs: number | null;
  /** Empty: no node is planned. */
  readonly plannedNode: string;
  /** Why it is on another node. Empty: it is not. */
  readonly offPlan: string;
};

type Of = {
  readonly job: Job;
  readonly kind: Kind | undefined;
  /** The planned nodes of the live admission. Null or omitted: none are planned. */
  readonly plan?: PlannedNodes | null;
};

const PHASE: Readonly<Partial<Record<TaskPhase, string>>> = {
  RUNNING: "Running",
  SUCCESS: "Succeeded",
  RETRYABLE_FAILURE: "Failed",
  PERMANENT_FAILURE: "Failed",
  ABORTED: "Deleted",
};

/** The admission whose pods are shown: the current one, else a former one whose pods may still exist. */
export function shownAdmission(job: Job): Admission | null {
  return currentAdmission(job) ?? job.admissions.findLast(({ goneMs }) => goneMs === null) ?? null;
}

/** The first pods of the current admission as they were recorded. Empty: the job has none. */
export function recordedPods(of: Of): readonly ShownPod[] {
  const admission = currentAdmission(of.job);
  if (admission === null) return [];
  const members = membersOf(of.job.spec, admission.members).slice(0, PODS_TOLD_MAX);
  const pods = members.map((member) => recordedPod(of, admission, member));
  const places = !of.plan ? [] : podPlaces(of.plan, admission.members);
  const nodes = new Map(places.map(({ role, index, node }) => [replicaKey(role, index), node]));
  const located = pods.map((pod) => {
    return { ...pod, node: pod.node || (nodes.get(replicaKey(pod.replicaType, pod.index)) ?? "") };
  });
  return planned(of, admission, located);
}

/** Pods with their planned nodes. */
function planned({ plan }: Of, { state }: Admission, pods: readonly ShownPod[]): readonly ShownPod[] {
  if (!plan || state !== "live") return pods;
  const places = placesIn(plan.placement);
  return pods.map((pod) => {
    const plannedNode = places(pod.replicaType, pod.index)?.node ?? "";
    if (plannedNode === "") return pod;
    return { ...pod, plannedNode, offPlan: whyOffPlan({ planned: plannedNode, node: pod.node }, plan.nodes) };
  });
}

/** The pods of the shown admission as its cluster reports them. Members without a pod are shown as recorded. */
export function seenPods(of: Of, pods: readonly PodView[], nowMs: number): readonly ShownPod[] {
  const { job } = of;
  const admission = shownAdmission(job);
  if (admission === null) return [];
  const own = pods.filter((pod) => pod.jobUid === job.uid && pod.admission === admission.number && !pod.released);
  const byMember = Map.groupBy(own, ({ role, index }) => `${role}/${index}`);
  const shown = membersOf(job.spec, admission.members).flatMap((member) => {
    const there = byMember.get(`${member.role.toLowerCase()}/${member.index}`) ?? [];
    const pod = [...there].sort((a, b) => b.attempt - a.attempt || Number(a.deleting) - Number(b.deleting))[0];
    if (pod !== undefined) return seenPod(of, member, pod, nowMs);
    return admission.state === "undone" ? [] : missingPod(of, admission, member, nowMs);
  });
  return planned(of, admission, shown);
}

const NOT_PLANNED = { plannedNode: "", offPlan: "" };

type Member = { readonly role: string; readonly index: number };

function recordedPod({ job, kind }: Of, admission: Admission, member: Member): ShownPod {
  const key = replicaKey(member.role, member.index);
  const { pods, attempts } = job.status;
  const facts = pods?.admission === admission.number ? pods.facts?.[key] : undefined;
  const reason = facts?.reason ?? "";
  const phase = PHASE[podPhase(job, admission.number, key)] ?? "Pending";
  return {
    name: podName({ job, kind, ...member }),
    replicaType: member.role,
    index: member.index,
    attempt: attempts.byReplica[key] ?? 1,
    phase,
    node: facts?.node ?? "",
    ready: phase === "Running" && facts?.ready === true,
    restarts: facts?.restarts ?? 0,
    reason,
    message: problemOf(job, member.role, (problem) => problem.reason === reason)?.message ?? "",
    createTimeMs: null,
    ...NOT_PLANNED,
  };
}

function seenPod({ kind }: Of, { role, index }: Member, pod: PodView, nowMs: number): ShownPod {
  const context = { defaultContainer: kind?.defaultContainer ?? null, limits: PENDING_LIMITS, nowMs };
  // Only the worker knows how long pods may be pending.
  const reading = pod.phase === "Pending" ? null : readPod(pod, context);
  const { message, ...facts } = podFacts(pod, reading, nowMs);
  const phase = reading === null ? pod.phase : phaseOf(pod, reading);
  return {
    name: pod.name,
    replicaType: role,
    index,
    attempt: pod.attempt,
    phase: pod.deleting ? "Terminating" : phase,
    ...facts,
    message: cutText(message, PROBLEM_CHARS_MAX),
    createTimeMs: pod.createTimeMs || null,
    ...NOT_PLANNED,
  };
}

/** A member of which no pod exists: it has ended and was deleted, or it is not created yet. */
function missingPod(of: Of, admission: Admission, member: Member, nowMs: number): ShownPod {
  const recorded = recordedPod(of, admission, member);
  const hasEnded = admission.ended?.[replicaKey(member.role, member.index)] !== undefined;
  if (admission.state !== "live" || hasEnded || recorded.phase === "Succeeded") return recorded;
  const why = waitsForOthers(of, admission, member) ? WAITS : whyMissing(of.job, member, nowMs);
  return { ...recorded, phase: "NotCreated", node: "", ready: false, restarts: 0, ...why };
}

const WAITS = {
  reason: "WaitsForOthers",
  message: "its replica type starts after others, as the order of the job says",
};

/** True for a member of a replica type that could not start yet. */
function waitsForOthers({ job, kind }: Of, { begunMs = {} }: Admission, { role }: Member): boolean {
  return kind?.rules?.startsInOrder?.(job.spec) === true && begunMs[role] === undefined;
}

const NOT_CREATED: readonly string[] = ["NameTaken", "PodGroupPending"];

function whyMissing(job: Job, { role, index }: Member, nowMs: number): Pick<ShownPod, "reason" | "message"> {
  const key: ReplicaKey = replicaKey(role, index);
  const notBeforeMs = job.status.attempts.notBeforeMs[key] ?? 0;
  if (notBeforeMs > nowMs) {
    return { reason: "Backoff", message: `it starts again at ${new Date(notBeforeMs).toISOString()}` };
  }
  const isAboutCreation = ({ reason }: PodProblem) => reason.startsWith("FailedCreate") || NOT_CREATED.includes(reason);
  const { reason = "", message = "" } = problemOf(job, role, isAboutCreation) ?? {};
  return { reason, message };
}

function problemOf(job: Job, role: string, fits: (problem: PodProblem) => boolean): PodProblem | undefined {
  return job.status.podProblems?.problems.find((problem) => problem.replicaType === role && fits(problem));
}
