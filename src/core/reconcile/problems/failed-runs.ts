/**
 * Finds the containers of a job that have failed, so that their last lines are kept before their pods are deleted.
 */
import type { FailedRun } from "../../job/failure-logs/kept-logs.ts";
import type { Job } from "../../job/job.ts";
import { replicaKey, rolesOf } from "../../job/roles.ts";
import type { Kind } from "../../kinds/kind.ts";
import { lacksMemory } from "../../pods/read/failure.ts";
import type { ContainerEnd, ContainerView, PodView } from "../../pods/read/pod-view.ts";
import { PENDING_LIMITS } from "../../pods/read/read-pending.ts";
import { readPod } from "../../pods/read/read-pod.ts";
import { exitCodeIn, isRetried } from "../count-failures.ts";
import type { ReconcileConfig } from "../decision-draft.ts";
import type { Observed } from "../observed.ts";

type FailedRunInputs = {
  readonly job: Job;
  readonly kind: Kind;
  readonly nowMs: number;
  readonly config: Pick<ReconcileConfig, "pending">;
};

/** A pod of the job, its place in the order of the replicas, and how much it is to blame: 0 first. */
type PlacedPod = {
  readonly pod: PodView;
  readonly cluster: string;
  readonly role: string;
  readonly index: number;
  readonly place: number;
  readonly blame: number;
  /** The container that the failure of the pod is blamed on. Null: none. */
  readonly blamed: string | null;
};

/**
 * The last failed run of each container of the pods that are seen, the one that the failure is blamed on first. A pod
 * that is being deleted ends because of that, unless all its containers had ended before, or the platform ends it.
 * Nothing is read of a job that is being deleted: its lines would go with it.
 */
export function failedRuns(inputs: FailedRunInputs, observed: Observed): readonly FailedRun[] {
  const { job } = inputs;
  if (job.deleteTimeMs !== null) return [];
  const roles = rolesOf(job.spec);
  const placed = observed.flatMap(({ cluster, pods }) =>
    pods.flatMap((pod) => placedPod({ ...inputs, roles }, cluster, pod) ?? []),
  );
  return placed.sort((a, b) => a.blame - b.blame || a.place - b.place || a.index - b.index).flatMap(runsIn);
}

function placedPod(
  { job, kind, nowMs, config, roles }: FailedRunInputs & { readonly roles: readonly string[] },
  cluster: string,
  pod: PodView,
): PlacedPod | null {
  if (pod.jobUid !== job.uid || pod.index === null) return null;
  if (pod.deleting && !pod.endedFirst && !pod.disrupted) return null;
  const place = roles.findIndex((role) => role.toLowerCase() === pod.role);
  const role = roles[place];
  if (role === undefined || !containersOf(pod).some((container) => lastFailure(container) !== null)) return null;
  const limits = config.pending ?? PENDING_LIMITS;
  const reading = readPod(pod, { defaultContainer: kind.defaultContainer, limits, nowMs });
  const where = { pod, cluster, role, place, index: pod.index };
  if (reading.kind !== "failed") return { ...where, blame: 3, blamed: null };
  const { failure } = reading;
  const policy = job.spec.replicaSpecs[role]?.restartPolicy ?? "Never";
  const retried = isRetried({ policy, failure, exitCode: exitCodeIn({ pod, role }, { job, kind }) });
  const final = failure.permanent ? 0 : 1;
  return { ...where, blame: retried ? 2 : final, blamed: failure.container };
}

function runsIn({ pod, cluster, role, index, blamed }: PlacedPod): readonly FailedRun[] {
  const runs = containersOf(pod).flatMap((container) => {
    const failure = lastFailure(container);
    if (failure === null) return [];
    const { end, ...run } = failure;
    return {
      ...run,
      podUid: pod.uid,
      container: container.name,
      replica: replicaKey(role, index),
      attempt: Math.max(1, pod.attempt),
      admission: pod.admission,
      cluster,
      pod: pod.name,
      exitCode: end.exitCode,
      reason: end.reason,
    };
  });
  return [
    ...runs.filter(({ container }) => container === blamed),
    ...runs.filter(({ container }) => container !== blamed),
  ];
}

function containersOf({ initContainers, containers }: PodView): readonly ContainerView[] {
  return [...initContainers, ...containers];
}

/** The last run of a container, if it has failed. Null: it runs, or has ended well. */
function lastFailure({
  terminated,
  lastTerminated,
  waiting,
  restarts,
}: ContainerView): { readonly end: ContainerEnd; readonly restarts: number; readonly previous: boolean } | null {
  if (terminated !== null) return hasFailed(terminated) ? { end: terminated, restarts, previous: false } : null;
  if (lastTerminated === null || !hasFailed(lastTerminated)) return null;
  // A kubelet counts a restart when the next run begins.
  return { end: lastTerminated, restarts: waiting === null ? Math.max(0, restarts - 1) : restarts, previous: true };
}

function hasFailed(end: ContainerEnd): boolean {
  return end.exitCode !== 0 || lacksMemory(end);
}
