import { setCondition } from "../conditions.ts";
import type { ConditionType, JobStatus } from "../status.ts";

/** The conditions of a job that is admitted. */
export const RUNNING_CONDITIONS: readonly ConditionType[] = [
  "QuotaReserved",
  "Admitted",
  "PodsReady",
  "Running",
  "Restarting",
];

/** The reason of a gang that leaves a lost cluster. */
export const CLUSTER_LOST = "ClusterLost";

/** Why an admission is undone. `reason`: of the conditions. */
export type WhyUndone = { readonly reason: string; readonly message: string };

/** The status of a job whose live admission is undone: nothing of it runs. It keeps its attempts. */
export function undone(status: JobStatus, { reason, message }: WhyUndone, nowMs: number): JobStatus {
  const over = status.conditions.filter(({ type, status }) => RUNNING_CONDITIONS.includes(type) && status === "True");
  const conditions = over.reduce(
    (all, { type }) => setCondition(all, { type, status: "False", reason, message }, nowMs),
    status.conditions,
  );
  return {
    ...status,
    conditions,
    startTimeMs: null,
    replicaStatuses: {},
    attempts: { ...status.attempts, restartsSeen: {} },
  };
}
