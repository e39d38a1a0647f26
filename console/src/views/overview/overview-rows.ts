/** What clusters and queues answer, as the rows of the overview. */
import { clusterProblems } from "../../../../src/cli/output/cluster-words.ts";
import type { Cluster } from "../../../../src/gen/gangway/v1/cluster_service_pb.ts";
import type { Queue } from "../../../../src/gen/gangway/v1/queue_service_pb.ts";
import { shortFlavor } from "../../parts/job-summary.ts";

/** One flavor of one cluster. */
export type ClusterRow = {
  readonly cluster: string;
  readonly isSimulated: boolean;
  readonly flavor: string;
  readonly nodes: number;
  /** What is held of what schedulable nodes have. Null: the cluster was not observed yet. */
  readonly use: Use | null;
  /** Why it takes no gangs, such as `unreachable` or `cordoned`, and what keeps the flavor from being used. */
  readonly problems: readonly string[];
};

export type Use = { readonly held: number; readonly all: number };

export function clusterRows(clusters: readonly Cluster[]): readonly ClusterRow[] {
  return clusters.flatMap((cluster) =>
    cluster.flavors.map(({ name, nodes, allocatable, free, problem }) => ({
      cluster: cluster.name,
      isSimulated: cluster.simulated,
      flavor: shortFlavor(name),
      nodes,
      use: useOf(allocatable, free),
      problems: [...clusterProblems(cluster), ...[cluster.problem, problem].filter((text) => text !== "")],
    })),
  );
}

/** Extended resources are counted in whole numbers. */
function useOf(allocatable: string, free: string): Use | null {
  const [all, left] = [Number(allocatable), Number(free)];
  return allocatable === "" || Number.isNaN(all) || Number.isNaN(left) ? null : { held: all - left, all };
}

/** One flavor of one queue. */
export type QueueRow = {
  readonly queue: string;
  readonly flavor: string;
  readonly used: number;
  /** Its own quota, with what is granted for a time. */
  readonly quota: number;
  readonly borrowed: number;
  readonly lent: number;
  readonly waiting: number;
  readonly admitted: number;
  /** Why it stands out, the most important first. */
  readonly marks: readonly ("frozen" | "stopped" | "waits below its quota" | "borrows" | "lends")[];
};

/** The queues that stand out first: frozen or stopped ones, those that starve, those that borrow or lend. */
export function queueRows(queues: readonly Queue[]): readonly QueueRow[] {
  const rows = queues.flatMap((queue) => queue.quotas.map((quota) => rowOf(queue, quota)));
  return rows.sort((one, other) => rankOf(other) - rankOf(one));
}

function rowOf(queue: Queue, { flavor, nominal, granted }: Queue["quotas"][number]): QueueRow {
  const of = (amounts: Readonly<Record<string, bigint>> | undefined) => Number(amounts?.[flavor] ?? 0n);
  const { use, frozenBy, stoppedBy } = queue;
  const row = {
    queue: queue.name,
    flavor: shortFlavor(flavor),
    used: of(use?.used),
    quota: Number(nominal + granted),
    borrowed: of(use?.borrowed),
    lent: of(use?.lent),
    waiting: use?.waitingJobs ?? 0,
    admitted: use?.admittedJobs ?? 0,
  };
  const marks = [
    frozenBy === "" ? null : ("frozen" as const),
    stoppedBy === "" ? null : ("stopped" as const),
    row.waiting > 0 && row.used < row.quota ? ("waits below its quota" as const) : null,
    row.borrowed > 0 ? ("borrows" as const) : null,
    row.lent > 0 ? ("lends" as const) : null,
  ];
  return { ...row, marks: marks.filter((mark) => mark !== null) };
}

function rankOf({ marks, waiting }: QueueRow): number {
  const RANKS = { frozen: 5, stopped: 4, "waits below its quota": 3, borrows: 2, lends: 2 };
  const [first] = marks;
  if (first !== undefined) return RANKS[first];
  return waiting > 0 ? 1 : 0;
}
