import {
  type GangsAlike,
  gangsKey,
  type LossPolicies,
  lossPolicyOf,
  type SayingQueue,
} from "../../../core/admin/loss-policies.ts";
import type { OnClusterLost } from "../../../core/job/spec.ts";
import { type Executor, onlyRow } from "../db/db.ts";

/** Whether gangs that ran in these clusters wait while the clusters are lost. Names gangs that are there alone. */
export async function lossPoliciesIn(executor: Executor, clusters: readonly string[]): Promise<LossPolicies> {
  if (clusters.length === 0) return new Map();
  const { placed, queues } = onlyRow(await executor.query<Placed>(PLACED_IN, [clusters]));
  const tree = new Map(queues.map((queue) => [queue.name, queue]));
  return new Map(placed.map((alike) => [gangsKey(alike), lossPolicyOf(alike, tree)]));
}

type Placed = {
  readonly placed: readonly (GangsAlike & { readonly own: OnClusterLost })[];
  readonly queues: readonly SayingQueue[];
};

const PLACED_IN = `
select coalesce((
         select json_agg(json_build_object(
                  'namespace', alike.namespace, 'queue', alike.queue, 'own', n.on_cluster_lost
                ))
           from (
             select distinct j.namespace, j.queue
               from admission_clusters c join jobs j on j.uid = c.job_uid
              where c.cluster = any ($1::text[])
           ) alike
           join namespaces n on n.name = alike.namespace
       ), '[]') as placed,
       coalesce((
         select json_agg(json_build_object('name', name, 'parent', parent, 'onClusterLost', on_cluster_lost))
           from queues
       ), '[]') as queues`;
