import { currentAdmission, type Job } from "../job/job.ts";
import { replicaKey, rolesOf } from "../job/roles.ts";
import { type Condition, isTerminal, type JobPhase, type ReplicaKey } from "../job/status.ts";
import {
  type ExternalResource,
  PODS_TOLD_MAX,
  type ReasonInfo,
  type RecordedInfo,
  type TaskPhase,
} from "../job/task-info.ts";
import type { LogLink } from "./log-links.ts";
import { podName } from "./pod-name.ts";

/** A pod as something that its job has started. */
export type PodResource = ExternalResource & { readonly replica: string };

/** How a gang of pods is, in the words in which plugins tell of what they run. */
export type PodInfo = Omit<RecordedInfo, "externalResources"> & { readonly externalResources: readonly PodResource[] };

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

/** The condition that says since when and why a job is in its phase; of those that wait or start, none does. */
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

/** Reads from the record what a plugin would tell of such a job. The version grows with the record. `logs` are those of its pods. */
export function podInfo(job: Job, logs: readonly LogLink[]): PodInfo {
  const { status } = job;
  const condition = status.conditions.find(({ type }) => type === CONDITION[status.phase]);
  return {
    phase: PHASE[status.phase],
    version: job.version,
    reason: status.waiting?.message ?? status.failure?.message ?? condition?.message ?? "",
    logs: [],
    externalResources: resourcesOf(job, logs),
    occurredAtMs: status.waiting?.sinceMs ?? condition?.lastTransitionMs ?? job.createTimeMs,
    reportedAtMs: Math.max(job.createTimeMs, ...status.conditions.map(({ lastUpdateMs }) => lastUpdateMs)),
    additionalReasons: lastRestart(job),
    customInfo: null,
  };
}

/** Why a job that has ended was restarting until then. */
function lastRestart({ status }: Job): readonly ReasonInfo[] {
  const restart = status.conditions.find(({ type, status: is }) => type === "Restarting" && is === "False");
  return restart === undefined ? [] : [{ reason: restart.message, occurredAtMs: null }];
}

function resourcesOf(job: Job, logs: readonly LogLink[]): readonly PodResource[] {
  const admission = currentAdmission(job);
  if (admission === null) return [];
  const byReplica = Map.groupBy(logs, ({ replica }) => replica);
  return rolesOf(job.spec)
    .flatMap((role) => Array.from({ length: admission.members[role] ?? 0 }, (_, at) => ({ role, at })))
    .slice(0, PODS_TOLD_MAX)
    .map(({ role, at }, index) => {
      const replica = replicaKey(role, at);
      return {
        externalId: podName({ job, role, index: at }),
        replica,
        index,
        retryAttempt: (job.status.attempts.byReplica[replica] ?? 1) - 1,
        phase: podPhase(job, admission.number, replica),
        cacheStatus: null,
        logs: byReplica.get(replica) ?? [],
      };
    });
}

/** As it was last seen. What had not ended when its job did is taken away, unless the job's policy lets it run on. */
function podPhase({ status, spec }: Job, admission: number, replica: ReplicaKey): TaskPhase {
  const { pods } = status;
  const seen = (pods?.admission === admission ? pods.phases[replica] : undefined) ?? "QUEUED";
  const isOver = isTerminal(status) && (seen === "QUEUED" || spec.runPolicy.cleanPodPolicy !== "None");
  return isOver && (seen === "QUEUED" || seen === "RUNNING") ? "ABORTED" : seen;
}
