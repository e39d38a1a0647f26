import { setCondition } from "./conditions.ts";
import type { Job } from "./job.ts";
import type { Admission, JobStatus } from "./status.ts";

/** What people read of it; fits a job's event. */
type Told = { readonly type: "Normal"; readonly reason: string; readonly message: string };

/** The status of a waiting job once a gang of it is admitted, and the event that says so. Its attempts and replica statuses stay. */
export function admitted(job: Job, admission: Admission, nowMs: number): { status: JobStatus; event: Told } {
  const flavors = [...new Set(Object.values(admission.flavors))].sort();
  const under = flavors.length === 0 ? "" : ` under ${flavors.join(", ")}`;
  const where = admission.cluster === "" ? "its service" : `cluster ${admission.cluster}${under}`;
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
