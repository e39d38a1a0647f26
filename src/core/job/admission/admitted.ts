import { clusterWords } from "../cluster-text.ts";
import { isConditionTrue, setCondition } from "../conditions.ts";
import type { JobEvent } from "../event.ts";
import { flavorWords } from "../flavor-labels.ts";
import type { Job } from "../job.ts";
import { withoutNomination } from "../nomination.ts";
import { reasonFor } from "../reason-for.ts";
import type { Admission, Condition, JobStatus } from "../status.ts";

/** The status of a job after its admission, and the event about it. Attempts and replica statuses stay. */
export function admitted(job: Job, admission: Admission, nowMs: number): { status: JobStatus; event: JobEvent } {
  const flavors = flavorWords(admission.flavors);
  const under = flavors === "" ? "" : ` under ${flavors}`;
  const { cluster: name } = admission;
  const where = name === null ? "its service" : clusterWords({ ...admission, name }) + under;
  const reserved = setCondition(
    job.status.conditions,
    { type: "QuotaReserved", status: "True", reason: "QuotaReserved", message: `Quota is reserved in ${where}.` },
    nowMs,
  );
  const change = { status: "True", reason: "Admitted", message: `The gang is admitted to ${where}.` } as const;
  const conditions = setCondition(noLongerPreempted(reserved, change, nowMs), { type: "Admitted", ...change }, nowMs);
  const reason = reasonFor(job.spec.kind, "Admitted");
  return {
    status: { ...withoutNomination(job.status), phase: "ADMITTED", conditions, waiting: null },
    event: {
      type: "Normal",
      reason,
      message: `${job.spec.kind} ${job.name} is admitted to ${where} (admission ${admission.number}).`,
    },
  };
}

/** Sets the condition `Preempted` to False if it is True. One that was never set stays unset. */
function noLongerPreempted(
  conditions: readonly Condition[],
  { reason, message }: Pick<Condition, "reason" | "message">,
  nowMs: number,
): readonly Condition[] {
  if (!isConditionTrue(conditions, "Preempted")) return conditions;
  return setCondition(conditions, { type: "Preempted", status: "False", reason, message }, nowMs);
}
