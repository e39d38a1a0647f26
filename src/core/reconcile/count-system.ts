/** Counts what the platform does to pods. It serves users of large gangs: one lost rack must not spend their budget. */
import { liveAdmission } from "../job/job.ts";
import type { Attempts, Incident } from "../job/status.ts";
import type { Inputs } from "./decision-draft.ts";
import type { SlotFailure } from "./member-ends.ts";

/** Disruptions of one admission that come within this time of the first have one cause, and count once. */
const INCIDENT_MS = 60_000;

/** The failures of the system after the counted ones, and the incident that the next disruption may belong to. */
export function countSystem(
  counted: readonly SlotFailure[],
  { job, nowMs }: Pick<Inputs, "job" | "nowMs">,
): Pick<Attempts, "system" | "incident"> {
  const { system, incident } = job.status.attempts;
  const failures = counted.filter(({ failure }) => failure.kind === "SYSTEM");
  const single = failures.filter(({ failure }) => !failure.lost).length;
  const admission = liveAdmission(job)?.number ?? 0;
  if (single === failures.length || isUnderWay(incident, { admission, nowMs })) return { system: system + single };
  return { system: system + single + 1, incident: { admission, sinceMs: nowMs } };
}

function isUnderWay(incident: Incident | undefined, now: { readonly admission: number; readonly nowMs: number }) {
  if (incident === undefined || incident.admission !== now.admission) return false;
  const lastedMs = now.nowMs - incident.sinceMs;
  return lastedMs >= 0 && lastedMs < INCIDENT_MS;
}
