import type { ClusterRecord } from "../../../core/admin/cluster.ts";
import type { NamespaceRecord } from "../../../core/admin/namespace.ts";
import type { JobPriorityClass } from "../../../core/job/priority-class.ts";
import { type Executor, onlyRow, storable } from "../db/db.ts";
import { prepared } from "../db/prepared.ts";
import { FIND_DEFAULT } from "./priority-classes.ts";
import { BESIDE_SIMULATED } from "./simulated-clusters.ts";

/** What every submission of a job needs to know. */
export type IntakeRow = {
  /** Null: the namespace does not exist. */
  readonly namespace: Pick<NamespaceRecord, "project" | "defaultQueue" | "podPolicy"> | null;
  /** The class of jobs that name neither a class nor a priority. Null: there is none. */
  readonly defaultClass: JobPriorityClass | null;
  /** Those that exist of the queue that was asked for and the default queue of the namespace. */
  readonly queues: readonly string[];
  /** The clusters that take gangs. Empty if none of them is simulated. */
  readonly clusters: readonly Pick<ClusterRecord, "name" | "labels" | "simulated">[];
};

/** Reads it in one statement, which every submission waits for. */
export async function intakeRow(
  executor: Executor,
  { namespace, queue }: { readonly namespace: string; readonly queue: string },
): Promise<IntakeRow> {
  return onlyRow(await executor.query<IntakeRow>(INTAKE_ROW, [namespace, storable(queue)]));
}

const INTAKE_ROW = prepared(`
with known as (
  select project, default_queue as "defaultQueue", pod_policy as "podPolicy" from namespaces where name = $1
)
select (select row_to_json(n) from known n) as namespace,
       (select row_to_json(c) from (${FIND_DEFAULT}) c) as "defaultClass",
       (select coalesce(json_agg(name), '[]') from queues
         where name = $2 or name = (select "defaultQueue" from known)) as queues,
       (select coalesce(json_agg(c), '[]') from (${BESIDE_SIMULATED}) c) as clusters`);
