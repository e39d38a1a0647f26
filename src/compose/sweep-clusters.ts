/**
 * Has workers look again at jobs of which something is left in a cluster that they have left. A watch tells of each
 * object when it comes. But while its cluster counts as lost here, nothing is decided about it, and a later list tells
 * nothing of an object that has not changed.
 */
import type { Cluster } from "../adapters/cluster/cluster.ts";
import type { Base } from "./base.ts";

type Swept = Pick<Cluster, "name" | "ownObjects">;
type SweepBase = Pick<Base, "store" | "heard">;

/** So many owners of objects are compared with the records by one statement. */
const PAGE = 5_000;

export async function sweepCluster({ store, heard }: SweepBase, { name, ownObjects }: Swept): Promise<void> {
  const seen = [...ownObjects()];
  for (let from = 0; from < seen.length; from += PAGE) {
    const left = await store.clusters.jobsLeftIn(name, seen.slice(from, from + PAGE));
    for (const jobUid of left) heard.job(jobUid);
  }
}

/** Lets a cluster that has returned take gangs again once nothing is left there. */
export async function endReturn(base: SweepBase & Pick<Base, "tell">, { name, ownObjects }: Swept): Promise<void> {
  const { ended, left } = await base.store.clusters.endReturn(name, [...ownObjects()]);
  for (const jobUid of left) base.heard.job(jobUid);
  if (ended) base.tell.planner();
}
