import { maxOf } from "../../runtime/lists.ts";
import { cleanPodPolicyOf } from "../job/clean-pod-policy.ts";
import { currentAdmission, type Job } from "../job/job.ts";
import { membersOf, replicaKey } from "../job/roles.ts";
import { type Condition, isTerminal, type JobPhase, type ReplicaKey } from "../job/status.ts";
import {
  type ExternalResource,
  PODS_TOLD_MAX,
  type ReasonInfo,
  type RecordedInfo,
  type TaskPhase,
} from "../job/task-info.ts";
import type { Kind } from "./kind.ts";
import type { ContainerLogLink } from "./log-links.ts";
import { podName } from "./pod-name.ts";

/** A pod, shown as an external resource of its job. */
export type PodResource = ExternalResource & { readonly replica: string };

/** The state of a gang, in the same form as plugins report the state of a task. */
type PodInfo = Omit<RecordedInfo, "externalResources"> & { readonly externalResources: readonly PodResource[] };

const PHASE: Readonly<Record<JobPhase, TaskPhase>> = {
  WAITING: "WAITING_FOR_RESOURCES",
  SUSPENDED: "NOT_READY",
  ADMITTED: "QUEUED",
  STARTING: "INITIALIZING",
  RUNNING: "RUNNING",
  RESTARTING: "INITIALIZING",
  SUCCEEDED: "SUCCESS",
  FAILED: "PERMANENT_FAILURE",
  CANCELLED: "ABORTED",
};

/** The condition whose time and message explain a phase. Waiting jobs have none. */
const CONDITION: Readonly<Partial<Record<JobPhase, Condition["type"]>>> = {
  SUSPENDED: "Suspended",
  ADMITTED: "Admitted",
  STARTING: "Admitted",
  RUNNING: "Running",
  RESTARTING: "Restarting",
  SUCCEEDED: "Succeeded",
  FAILED: "Failed",
  CANCELLED: "Cancelled",
};

/** Derives the info of a job with pods from its record. Its version is the version of the record. */
export function podInfo(job: Job, kind: Kind | undefined, logs: readonly ContainerLogLink[]): PodInfo {
  const { status } = job;
  const condition = status.conditions.find(({ type }) => type === CONDITION[status.phase]);
  return {
    phase: PHASE[status.phase],
    version: job.version,
    reason: status.waiting?.message ?? status.failure?.message ?? condition?.message ?? "",
    logs: [],
    externalResources: resourcesOf(job, kind, logs),
    occurredAtMs: status.waiting?.sinceMs ?? condition?.lastTransitionMs ?? job.createTimeMs,
    reportedAtMs: maxOf(
      status.conditions.map(({ lastUpdateMs }) => lastUpdateMs),
      job.createTimeMs,
    ),
    additionalReasons: lastRestart(job),
    customInfo: null,
  };
}

/** The reason why an ended job was restarting before. */
function lastRestart({ status }: Job): readonly ReasonInfo[] {
  const restart = status.conditions.find(({ type, status: is }) => type === "Restarting" && is === "False");
  return restart === undefined ? [] : [{ reason: restart.message, occurredAtMs: null }];
}

function resourcesOf(job: Job, kind: Kind | undefined, logs: readonly ContainerLogLink[]): readonly PodResource[] {
  const admission = currentAdmission(job);
  if (admission === null) return [];
  const byReplica = Map.groupBy(logs, ({ replica }) => replica);
  return membersOf(job.spec, admission.members)
    .slice(0, PODS_TOLD_MAX)
    .map((member, index) => {
      const replica = replicaKey(member.role, member.index);
      return {
        externalId: podName({ job, kind, ...member }),
        replica,
        index,
        retryAttempt: (job.status.attempts.byReplica[replica] ?? 1) - 1,
        phase: podPhase(job, admission.number, replica),
        cacheStatus: null,
        logs: byReplica.get(replica) ?? [],
      };
    });
}

/**
 * The phase of a pod when it was last seen. A pod that ran when its job ended is ABORTED, unless the clean-pod policy
 * let it run.
 */
export function podPhase({ status, spec }: Job, admission: number, replica: ReplicaKey): TaskPhase {
  const { pods } = status;
  const seen = (pods?.admission === admission ? pods.phases[replica] : undefined) ?? "QUEUED";
  const isOver = isTerminal(status) && (seen === "QUEUED" || cleanPodPolicyOf({ spec, status }) !== "None");
  return isOver && (seen === "QUEUED" || seen === "RUNNING") ? "ABORTED" : seen;
}
