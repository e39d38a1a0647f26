/** Says to how many pods a gang would grow, what is in the way, and what would make it wait for all of them. */

import { ofRole } from "../../core/job/flavor-labels.ts";
import { currentAdmission, type Job } from "../../core/job/job.ts";
import { memberCount } from "../../core/job/roles.ts";
import { totalReplicas } from "../../core/job/spec.ts";
import type { GangAdmission } from "../../core/job/status.ts";
import { elasticRolesOf, type Kind } from "../../core/kinds/kind.ts";
import { addedMembers } from "../../core/plan/model/gang.ts";
import { growsNoMore } from "../../core/plan/model/plan-gang.ts";
import type { SimulateJob } from "../ports.ts";
import type { CallContext } from "../rpc/call.ts";
import { simulationTo } from "./hide-others.ts";

type GrowthContext = Pick<CallContext, "access" | "signal"> & {
  readonly simulate: SimulateJob;
  readonly kind: Kind | undefined;
};

/** Empty: the gang has all its members, or does not grow. */
export async function growthText(job: Job, { simulate, kind, access, signal }: GrowthContext): Promise<string> {
  const admission = growingAdmission(job);
  if (admission === null) return "";
  const total = totalReplicas(job.spec);
  const isElastic = elasticRolesOf(kind, job.spec).length > 0;
  const judged = await simulate(missingPart(job, admission, isElastic), signal);
  if (judged === null) return "";
  const { message } = simulationTo(access, judged, job.spec.runPolicy.schedulingPolicy.queue);
  const why = judged.verdict === "FITS_NOW" ? "the rest fits now" : `the rest ${message}`;
  const name = job.namespace === "default" ? job.name : `${job.name} -n ${job.namespace}`;
  const again = `"gangway cancel ${name}", then "gangway rerun ${name} --min-available ${total}"`;
  return `; it would grow to ${total} pods: ${why}; growth never preempts; ${again} waits for all, and may preempt`;
}

/** The admission of a gang that may get more members. */
function growingAdmission(job: Job): GangAdmission | null {
  const admission = currentAdmission(job);
  if (admission === null || admission.state !== "live" || admission.cluster === null) return null;
  if (growsNoMore(job)) return null;
  const { cluster } = admission;
  return memberCount(admission.members) < totalReplicas(job.spec) ? { ...admission, cluster } : null;
}

/** The flavors that some replica types have. */
function flavorsOf(flavors: GangAdmission["flavors"], roles: readonly string[]): readonly string[] {
  return [...new Set(roles.flatMap((role) => Object.values(ofRole(flavors, role))))];
}

/** The missing members as a job of their own, where the gang runs, that preempts nobody. */
function missingPart(job: Job, { members, cluster, flavors }: GangAdmission, isElastic: boolean): Job {
  const { spec, status } = job;
  const replicas = Object.entries(spec.replicaSpecs);
  const all = Object.fromEntries(replicas.map(([role, replica]) => [role, replica.replicas]));
  const missing = addedMembers(members, all);
  const replicaSpecs = Object.fromEntries(
    replicas
      .filter(([role]) => (missing[role] ?? 0) > 0)
      .map(([role, replica]) => [role, { ...replica, replicas: missing[role] ?? 0 }]),
  );
  const minAvailable = isElastic ? 1 : memberCount(missing);
  const { nomination: _n, eviction: _e, shrink: _s, podProblems: _p, ...others } = status;
  return {
    ...job,
    uid: "00000000-0000-7000-8000-000000000000",
    admissions: [],
    status: { ...others, phase: "WAITING", waiting: null, backoff: null },
    spec: {
      ...spec,
      replicaSpecs,
      preemptionPolicy: "NEVER",
      placement: { clusters: [cluster], clusterSelector: {}, gpuModels: flavorsOf(flavors, Object.keys(replicaSpecs)) },
      runPolicy: { ...spec.runPolicy, schedulingPolicy: { ...spec.runPolicy.schedulingPolicy, minAvailable } },
    },
  };
}
