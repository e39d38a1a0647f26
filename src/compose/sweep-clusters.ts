/**
 * Has workers look again at jobs of which something is left in a cluster that they have left. A watch tells of each
 * object when it comes. But while its cluster counts as lost here, nothing is decided about it, and a later list tells
 * nothing of an object that has not changed.
 */
import type { Cluster } from "../adapters/cluster/cluster.ts";
import { type GangsOfCluster, gangsOfAdopted } from "../core/admin/placed-gangs.ts";
import type { Base } from "./base.ts";

type Swept = Pick<Cluster, "name" | "ownObjects">;
type SweepBase = Pick<Base, "store" | "heard">;
type SweepStore = Pick<SweepBase["store"], "clusters">;

/** So many owners of objects are compared with the records by one statement. */
const PAGE = 5_000;

/** The jobs that have left a cluster and of which something is seen there. */
async function jobsLeftIn(
  { clusters }: SweepStore,
  name: string,
  seen: Parameters<SweepStore["clusters"]["jobsLeftIn"]>[1],
): Promise<ReadonlySet<string>> {
  const left = new Set<string>();
  for (let from = 0; from < seen.length; from += PAGE) {
    for (const jobUid of await clusters.jobsLeftIn(name, seen.slice(from, from + PAGE))) left.add(jobUid);
  }
  return left;
}

export async function sweepCluster({ store, heard }: SweepBase, { name, ownObjects }: Swept): Promise<void> {
  for (const jobUid of await jobsLeftIn(store, name, [...ownObjects()])) heard.job(jobUid);
}

/** Lets a cluster that has returned take gangs again once nothing is left there. */
export async function endReturn(base: SweepBase & Pick<Base, "tell">, { name, ownObjects }: Swept): Promise<void> {
  const { ended, left } = await base.store.clusters.endReturn(name, [...ownObjects()]);
  for (const jobUid of left) base.heard.job(jobUid);
  if (ended) base.tell.planner();
}

/**
 * Which gangs with objects in a cluster are deleted once it is adopted, by asking it. Null: it does not answer this
 * process, or is not connected.
 */
export async function gangsIfAdopted(
  store: SweepStore,
  cluster: Pick<Cluster, "name" | "listOwners"> | undefined,
  signal: AbortSignal,
): Promise<GangsOfCluster | null> {
  const owners = await cluster?.listOwners(signal);
  if (cluster === undefined || owners === undefined || owners === null) return null;
  return gangsOfAdopted(owners, await jobsLeftIn(store, cluster.name, owners));
}
