import { type StandingFacts, statesOf, troubleOf } from "../../../core/admin/nodes/node-standing.ts";
import type { Placement } from "../../../core/job/placement/placement.ts";
import type { NamedNode, PlannedNodes } from "../../../core/job/placement/pod-places.ts";
import type { Executor } from "../db/db.ts";

type Row = {
  readonly placement: Placement;
  readonly nodes: readonly {
    readonly name: string;
    /** Null: members are on a node that does not exist. */
    readonly node: StandingFacts | null;
    readonly members: NamedNode["members"] | null;
  }[];
};

/**
 * The planned nodes of a job's live admission, with its pods there. Null: none are planned, or the cluster's own gang
 * scheduler chooses the nodes.
 */
export async function plannedNodes(executor: Executor, jobUid: string): Promise<PlannedNodes | null> {
  const [row] = await executor.query<Row>(PLANNED_NODES, [jobUid]);
  if (row === undefined) return null;
  const nodes = row.nodes.map(({ name, node, members }) => {
    return { name, exists: node !== null, trouble: node === null ? "" : troubleIn(node), members: members ?? [] };
  });
  return { placement: row.placement, nodes };
}

/** `cordoned and not ready`. Empty: the node takes pods. */
function troubleIn(node: StandingFacts): string {
  const states = statesOf(troubleOf(node)).filter((state) => state !== "READY");
  return states.map((state) => state.toLowerCase().replace("_", " ")).join(" and ");
}

/** A placement names all nodes that may take the pods. Of each the job's own pods are read. */
const PLANNED_NODES = `
select a.placement, coalesce((
         select json_agg(json_build_object(
                  'name', c.name,
                  'node', case when c.entry ->> 'node' is not null then json_strip_nulls(json_build_object(
                    'taints', c.entry -> 'node' -> 'taints', 'unschedulable', c.entry -> 'node' -> 'unschedulable',
                    'trouble', c.entry -> 'node' -> 'trouble')) end,
                  'members', (
                    select json_agg(json_build_object('role', m ->> 'role', 'index', (m ->> 'index')::int))
                      from json_array_elements(c.entry -> 'members') m
                     where m ->> 'jobUid' = $1::text and (m ->> 'admission')::int = a.number
                  )))
           from cluster_capacity c
          where c.cluster = a.cluster and c.kind = 'node' and c.entry is not null
            and c.name in (select json_array_elements_text(a.placement -> 'nodes'))
       ), '[]') as nodes
  from admissions a
  left join clusters k on k.name = a.cluster
 where a.job_uid = $1::uuid and a.state = 'live' and a.placement is not null
   and coalesce(k.gang_scheduler, 'none') = 'none'`;
