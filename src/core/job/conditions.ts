import { foreignText } from "../../runtime/foreign-text.ts";
import type { Condition, ConditionType } from "./status.ts";

const TERMINAL: readonly ConditionType[] = ["Succeeded", "Failed", "Cancelled"];

/** A condition to set, without its times. */
export type ConditionChange = Pick<Condition, "type" | "status" | "reason" | "message">;

/**
 * The conditions after one more is set. Source: Kubeflow's common API, where two terminal conditions can be True.
 *
 * - Same status and reason: nothing changes, not even the message.
 * - Running and Restarting replace each other: the other one leaves the list.
 * - A terminal condition that becomes True sets every other but Created to False; those keep their reasons.
 * - After a job has failed or was cancelled, nothing changes any more.
 */
export function setCondition(
  conditions: readonly Condition[],
  change: ConditionChange,
  nowMs: number,
): readonly Condition[] {
  if (isConditionTrue(conditions, "Failed") || isConditionTrue(conditions, "Cancelled")) return conditions;
  const current = conditions.find((condition) => condition.type === change.type);
  if (current?.status === change.status && current.reason === change.reason) return conditions;
  const ends = TERMINAL.includes(change.type) && change.status === "True";
  const others = conditions
    .filter((condition) => condition.type !== change.type && !replaces(change.type, condition.type))
    .map((condition) => (ends && condition.type !== "Created" ? setFalse(condition, nowMs) : condition));
  const lastTransitionMs = current?.status === change.status ? current.lastTransitionMs : nowMs;
  const message = foreignText(change.message);
  return [...others, { ...change, message, lastUpdateMs: nowMs, lastTransitionMs }];
}

/**
 * When Gangway accepted a job: since then it has the condition Created. Kubeflow's API calls this time `startTime`, the
 * time at which the controller acknowledged the job.
 */
export function acknowledgeTimeMs({
  status,
  createTimeMs,
}: {
  readonly status: { readonly conditions: readonly Condition[] };
  readonly createTimeMs: number;
}): number {
  return status.conditions.find(({ type }) => type === "Created")?.lastTransitionMs ?? createTimeMs;
}

/** True if the condition exists and is True. */
export function isConditionTrue(conditions: readonly Condition[], type: ConditionType): boolean {
  return conditions.some((condition) => condition.type === type && condition.status === "True");
}

function replaces(next: ConditionType, previous: ConditionType): boolean {
  return (next === "Running" && previous === "Restarting") || (next === "Restarting" && previous === "Running");
}

function setFalse(condition: Condition, nowMs: number): Condition {
  if (condition.status === "False") return condition;
  return { ...condition, status: "False", lastUpdateMs: nowMs, lastTransitionMs: nowMs };
}
