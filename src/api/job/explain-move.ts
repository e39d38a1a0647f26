/** Says why a gang that is to leave a lost cluster has not left it yet. */
import { isMoving, type Job, liveAdmission } from "../../core/job/job.ts";
import { memberCount } from "../../core/job/roles.ts";
import type { SimulateJob } from "../ports.ts";
import type { CallContext } from "../rpc/call.ts";
import { simulationTo } from "./hide-others.ts";

type MoveContext = Pick<CallContext, "access" | "signal"> & { readonly simulate: SimulateJob };

/** What can be in the way of a gang that comes before all that wait. */
const IN_THE_WAY: ReadonlySet<string> = new Set([
  "NoCapacity",
  "DomainFull",
  "TooLarge",
  "NoCluster",
  "QuotaExhausted",
  "AboveQuota",
  "NoQuota",
  "PoolFrozen",
]);

/** Empty: the gang stays where it is, or nothing is known to be in its way. */
export async function moveText(job: Job, { simulate, access, signal }: MoveContext): Promise<string> {
  const live = liveAdmission(job);
  const judged = live === null || !isMoving(job) ? null : await simulate(asMoving(job, live.members), signal);
  if (judged === null || !IN_THE_WAY.has(judged.reason)) return "";
  const { message } = simulationTo(access, judged, job.spec.runPolicy.schedulingPolicy.queue);
  return `at present no other cluster takes it: ${message}`;
}

/** The job as the planner looks for its place: with the members that it has, and nobody is preempted for it. */
function asMoving(job: Job, members: Readonly<Record<string, number>>): Job {
  const { spec } = job;
  const schedulingPolicy = { ...spec.runPolicy.schedulingPolicy, minAvailable: memberCount(members) };
  const runPolicy = { ...spec.runPolicy, schedulingPolicy };
  return { ...job, spec: { ...spec, preemptionPolicy: "NEVER", runPolicy } };
}
