/** What filters of jobs ask of other tables: the queues below a queue, and the jobs with pods on a node. */
import type { CapacityEntry } from "../../../core/plan/model/capacity-entry.ts";
import type { Executor } from "../db/db.ts";
import { UUID } from "./list-jobs.ts";

/** The names of the queues below a queue, at any depth. */
export async function queuesBelow(executor: Executor, queue: string): Promise<readonly string[]> {
  const rows = await executor.query<{ name: string }>(QUEUES_BELOW, [queue]);
  return rows.map(({ name }) => name);
}

const QUEUES_BELOW = `
with recursive below as (
  select name from queues where parent = $1
   union
  select q.name from queues q join below b on q.parent = b.name
)
select name from below order by name`;

/** A node of one cluster; `cluster` empty: of any. */
export type NodeOfCluster = { readonly node: string; readonly cluster: string };

/** The uids of the jobs that had pods on a node when its cluster was last recorded. */
export async function jobsOnNode(executor: Executor, { node, cluster }: NodeOfCluster): Promise<readonly string[]> {
  const rows = await executor.query<{ entry: CapacityEntry }>(NODE_ENTRIES, [node, cluster]);
  const members = rows.flatMap(({ entry }) => (entry.kind === "node" ? entry.members : []));
  // A pod may carry any text as its label.
  return [...new Set(members.map(({ jobUid }) => jobUid))].filter((uid) => UUID.test(uid));
}

const NODE_ENTRIES = `
select e.entry
  from clusters c join cluster_capacity e on e.cluster = c.name and e.kind = 'node' and e.name = $1
 where c.forgotten_ms is null and ($2 = '' or c.name = $2) and e.entry is not null
 order by c.name`;
