/** Says which pods are not on their planned nodes, and which rules of their templates the plan does not read. */
import { type Job, liveAdmission } from "../../core/job/job.ts";
import { offPlanText, podPlaces } from "../../core/job/placement/pod-places.ts";
import { notLookedAt } from "../../core/pods/fit/fit-table.ts";
import { objectAt } from "../../runtime/json.ts";
import type { JobReads } from "../ports.ts";
import { plannedNodesOf } from "./planned-nodes.ts";

/** The most rules that a text names. */
const RULES_MAX = 3;

/** Empty: all pods are on their planned nodes, or nobody knows yet, and none waits for a node. */
export async function placementText(reads: Pick<JobReads, "plannedNodes">, job: Job): Promise<string> {
  const live = liveAdmission(job);
  if (live === null) return "";
  const plan = await plannedNodesOf(reads, job);
  const offPlan = plan === null ? "" : offPlanText(podPlaces(plan, live.members), plan.nodes);
  const waits = job.status.podProblems?.problems.some(({ reason }) => reason === "Unschedulable") === true;
  const unread = offPlan === "" && !waits ? "" : unreadText(job);
  return [offPlan, unread].filter((text) => text !== "").join("; ");
}

function unreadText({ spec }: Job): string {
  const paths = Object.values(spec.replicaSpecs).flatMap(({ template }) => {
    return notLookedAt(objectAt(template, "spec")).map(({ path }) => path);
  });
  const rules = [...new Set(paths)];
  if (rules.length === 0) return "";
  const more = rules.length > RULES_MAX ? ` and ${rules.length - RULES_MAX} more` : "";
  return `the plan does not read these rules of its template: ${rules.slice(0, RULES_MAX).join(", ")}${more}`;
}
