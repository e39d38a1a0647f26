/** What operators see of the whole fleet: quota by queue, GPUs by cluster, jobs by phase. Metrics show it. */
import type { JobPhase } from "../job/status.ts";
import { CLUSTER_STATES, type ClusterRecord, type ClusterStateName, clusterState } from "./cluster.ts";
import { flavorNodes } from "./flavor-nodes.ts";
import type { QueueRecord } from "./queue.ts";

/** The use of a flavor by a queue, as `gangway queue list` shows it. */
export type QueueFlavor = {
  readonly queue: string;
  readonly flavor: string;
  readonly used: number;
  /** With its grant of quota, if it has one now. */
  readonly nominal: number;
  readonly borrowed: number;
};

/** The nodes of a flavor in a cluster, in units of the flavor's resource. */
export type ClusterFlavorNodes = {
  readonly cluster: string;
  readonly flavor: string;
  readonly allocatable: number;
  readonly free: number;
};

/** How many jobs that have not ended are in a phase. `reason`: why they wait; empty in other phases. */
export type JobCount = { readonly phase: string; readonly reason: string; readonly jobs: number };

/** Whether a cluster is in a state. Each cluster has one row for each state. */
export type StateOfCluster = { readonly cluster: string; readonly state: ClusterStateName; readonly isIn: boolean };

export type FleetSurvey = {
  readonly clusters: readonly StateOfCluster[];
  readonly queues: readonly QueueFlavor[];
  readonly flavors: readonly ClusterFlavorNodes[];
  readonly jobs: readonly JobCount[];
};

const MILLI = 1_000;

/** Sums up the records of a fleet. A cluster that was never observed, or takes no gangs any more, has no flavors. */
export function surveyOf(of: {
  readonly queues: readonly Pick<QueueRecord, "name" | "quotas" | "used" | "borrowed">[];
  readonly clusters: readonly SurveyedCluster[];
  readonly jobs: readonly JobCount[];
}): FleetSurvey {
  return {
    clusters: of.clusters.flatMap(statesOfCluster),
    queues: of.queues.flatMap(flavorsOfQueue),
    flavors: of.clusters.flatMap(flavorsOfCluster),
    jobs: withAllPhases(of.jobs),
  };
}

type SurveyedCluster = Pick<
  ClusterRecord,
  "name" | "flavors" | "capacity" | "retired" | "reachable" | "silence" | "returningMs"
>;

function statesOfCluster(cluster: SurveyedCluster): readonly StateOfCluster[] {
  if (cluster.retired === true) return [];
  const own = clusterState(cluster);
  return CLUSTER_STATES.map((state) => ({ cluster: cluster.name, state, isIn: state === own }));
}

/** The phases that no job is in have a count too, so that a graph of them shows 0. */
function withAllPhases(jobs: readonly JobCount[]): readonly JobCount[] {
  const known = new Set(jobs.map(({ phase }) => phase));
  const empty = LIVE_PHASES.filter(({ phase }) => !known.has(phase)).map((one) => ({ ...one, jobs: 0 }));
  return [...jobs, ...empty];
}

const LIVE_PHASES: readonly { readonly phase: JobPhase; readonly reason: string }[] = [
  { phase: "WAITING", reason: "NotEvaluated" },
  { phase: "ADMITTED", reason: "" },
  { phase: "STARTING", reason: "" },
  { phase: "RUNNING", reason: "" },
  { phase: "RESTARTING", reason: "" },
  { phase: "SUSPENDED", reason: "" },
];

/** A flavor that the queue has no quota for any more is shown while it uses some. */
function flavorsOfQueue({
  name,
  quotas,
  used,
  borrowed,
}: Pick<QueueRecord, "name" | "quotas" | "used" | "borrowed">): readonly QueueFlavor[] {
  const nominals = new Map(quotas.map(({ flavor, nominal, granted = 0 }) => [flavor, nominal + granted]));
  return [...new Set([...nominals.keys(), ...Object.keys(used)])].map((flavor) => ({
    queue: name,
    flavor,
    used: used[flavor] ?? 0,
    nominal: nominals.get(flavor) ?? 0,
    borrowed: borrowed[flavor] ?? 0,
  }));
}

function flavorsOfCluster({
  name,
  flavors,
  capacity,
  retired = false,
}: SurveyedCluster): readonly ClusterFlavorNodes[] {
  if (capacity === null || retired) return [];
  return flavors.map((flavor) => {
    const { allocatable, free } = flavorNodes(flavor, capacity.nodes);
    return { cluster: name, flavor: flavor.name, allocatable: allocatable / MILLI, free: free / MILLI };
  });
}
