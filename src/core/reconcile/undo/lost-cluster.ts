/**
 * Decides about a gang whose cluster counts as lost. Nobody can know whether its pods run, so a gang of which a pod was
 * seen running waits for the cluster; any other goes elsewhere.
 */
import type { Job } from "../../job/job.ts";
import type { Admission } from "../../job/status.ts";
import { changeAdmission, type Draft, type Inputs } from "../decision-draft.ts";
import type { Observed } from "../observed.ts";

/** True if the cluster of a live admission is lost, and was before any of the gang's pods was seen running. */
export function hasLostStart({ job, observed }: Pick<Inputs, "job" | "observed">, live: Admission): boolean {
  return isLost(observed, live) && !hasRun(job);
}

/** An admission that was made after the cluster's return has a higher fence, whatever is known of the return here. */
function isLost(observed: Observed, { cluster: of, fence = "0" }: Admission): boolean {
  const lostFence = observed.find(({ cluster }) => cluster === of)?.lostFence;
  return lostFence !== undefined && BigInt(fence) <= BigInt(lostFence);
}

/**
 * Notes that an admission which this decision stops left a lost cluster. Its tokens are free then, since nobody waits
 * to hear of its pods; what is left of them goes when the cluster returns.
 */
export function noteAbandoned(draft: Draft, inputs: Inputs, live: Admission): void {
  const stopped = draft.admissions.find(({ number, state }) => number === live.number && state !== "live");
  if (stopped === undefined || !hasLostStart(inputs, live)) return;
  changeAdmission(draft, { ...stopped, abandonedMs: inputs.nowMs });
}

/** True if some pod of the live admission was seen running or ended, as the record has it. */
function hasRun({ status }: Pick<Job, "status">): boolean {
  if (status.phase !== "ADMITTED" && status.phase !== "STARTING") return true;
  const counts = Object.values(status.replicaStatuses);
  return counts.some(({ active, succeeded, failed }) => active + succeeded + failed > 0);
}

/** The clusters of which something is known. */
export function withoutLost(observed: Observed): Observed {
  return observed.filter(({ lostFence }) => lostFence === undefined);
}
