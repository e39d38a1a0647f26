import { type Job, liveAdmission } from "../../core/job/job.ts";
import type { PlannedNodes } from "../../core/job/placement/pod-places.ts";
import type { JobReads } from "../ports.ts";

/** The planned nodes of a job. Null: none are planned. Only a job with a live admission is looked up. */
export async function plannedNodesOf(reads: Pick<JobReads, "plannedNodes">, job: Job): Promise<PlannedNodes | null> {
  return liveAdmission(job) === null ? null : reads.plannedNodes(job.uid);
}
