/** Tells an operator which gangs leave a cluster before it is declared lost, forgotten, or adopted. */
import { hasRun } from "../job/job.ts";
import type { JobStatus } from "../job/status.ts";

/** A gang in a cluster. */
export type NamedGang = { readonly namespace: string; readonly name: string };

/** A gang with a live admission in a cluster. */
export type PlacedGang = NamedGang & { readonly status: Pick<JobStatus, "phase" | "replicaStatuses"> };

export type GangsOfCluster = {
  /** Those that leave the cluster at once. */
  readonly leaving: readonly NamedGang[];
  /** How many stay. */
  readonly staying: number;
};

/** A cluster that is lost is left by gangs that never ran there; one that is forgotten by all. */
export function gangsOfCluster(gangs: readonly PlacedGang[], becomes: "lost" | "forgotten"): GangsOfCluster {
  const leaving = gangs.filter(({ status }) => becomes === "forgotten" || !hasRun(status));
  return { leaving, staying: gangs.length - leaving.length };
}

/** `owners`: the jobs with objects in a cluster; may repeat. `unknown`: those with objects that no record knows. */
export function gangsOfAdopted(
  owners: readonly { readonly jobUid: string; readonly namespace: string; readonly jobName: string }[],
  unknown: ReadonlySet<string>,
): GangsOfCluster {
  const jobs = new Map(owners.map(({ jobUid, namespace, jobName: name }) => [jobUid, { namespace, name }]));
  const leaving = [...jobs].filter(([uid]) => unknown.has(uid)).map(([, job]) => job);
  return { leaving, staying: jobs.size - leaving.length };
}
