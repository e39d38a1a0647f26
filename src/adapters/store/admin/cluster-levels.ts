import type { ClusterRecord } from "../../../core/admin/cluster.ts";
import type { TopologyLevel } from "../../../core/plan/model/topology.ts";
import type { Executor } from "../db/db.ts";
import { IS_RETIRED } from "./clusters.ts";

type ClusterLevels = Pick<ClusterRecord, "name" | "labels"> & { readonly levels: readonly TopologyLevel[] };

/** The clusters that may take gangs, by name, each with its own levels and those of its flavors. */
export function clusterLevels(executor: Executor): Promise<readonly ClusterLevels[]> {
  return executor.query<ClusterLevels>(CLUSTER_LEVELS);
}

const CLUSTER_LEVELS = `
select c.name, c.labels, (
         select coalesce(jsonb_agg(level), '[]') from (
           select jsonb_array_elements(c.topology) as level
           union
           select jsonb_array_elements(f.flavor::jsonb -> 'topology')
             from json_array_elements(c.flavors) f(flavor)
            where jsonb_typeof(f.flavor::jsonb -> 'topology') = 'array'
         ) levels
       ) as levels
  from clusters c
 where c.forgotten_ms is null and not ${IS_RETIRED}
 order by c.name`;
