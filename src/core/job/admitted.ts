import { clusterWords } from "./cluster-text.ts";
import { setCondition } from "./conditions.ts";
import type { JobEvent } from "./event.ts";
import type { Job } from "./job.ts";
import type { Admission, JobStatus } from "./status.ts";

/** The status of a job after its admission, and the event about it. Attempts and replica statuses stay. */
export function admitted(job: Job, admission: Admission, nowMs: number): { status: JobStatus; event: JobEvent } {
  const flavors = [...new Set(Object.values(admission.flavors))].sort();
  const under = flavors.length === 0 ? "" : ` under ${flavors.join(", ")}`;
  const { cluster: name } = admission;
  const where = name === null ? "its service" : clusterWords({ ...admission, name }) + under;
  const reserved = setCondition(
    job.status.conditions,
    { type: "QuotaReserved", status: "True", reason: "QuotaReserved", message: `Quota is reserved in ${where}.` },
    nowMs,
  );
  const conditions = setCondition(
    reserved,
    { type: "Admitted", status: "True", reason: "Admitted", message: `The gang is admitted to ${where}.` },
    nowMs,
  );
  const reason = `${job.spec.kind}Admitted`;
  return {
    status: { ...job.status, phase: "ADMITTED", conditions, waiting: null },
    event: {
      type: "Normal",
      reason,
      message: `${job.spec.kind} ${job.name} is admitted to ${where} (admission ${admission.number}).`,
    },
  };
}
