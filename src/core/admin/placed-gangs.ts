/** Tells an operator what becomes of the gangs of a cluster before it is declared lost, or forgotten. */
import { hasRun } from "../job/job.ts";
import type { JobStatus } from "../job/status.ts";

/** A gang with a live admission in a cluster. */
export type PlacedGang = {
  readonly namespace: string;
  readonly name: string;
  readonly status: Pick<JobStatus, "phase" | "replicaStatuses">;
};

export type GangsOfCluster = {
  /** Those that leave the cluster at once. */
  readonly leaving: readonly PlacedGang[];
  /** How many stay. */
  readonly staying: number;
};

/** A cluster that is lost is left by gangs that never ran there; one that is forgotten by all. */
export function gangsOfCluster(gangs: readonly PlacedGang[], becomes: "lost" | "forgotten"): GangsOfCluster {
  const leaving = gangs.filter(({ status }) => becomes === "forgotten" || !hasRun(status));
  return { leaving, staying: gangs.length - leaving.length };
}
