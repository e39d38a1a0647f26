import type { NamespaceRecord } from "../../../core/admin/namespace.ts";
import type { JobPriorityClass } from "../../../core/job/priority-class.ts";
import { type Executor, onlyRow } from "../db/db.ts";
import { FIND_DEFAULT } from "./priority-classes.ts";

/** What every submission of a job needs to know. */
export type IntakeRow = {
  /** Null: the namespace does not exist. */
  readonly namespace: Pick<NamespaceRecord, "project" | "defaultQueue" | "podPolicy"> | null;
  /** The class of jobs that name neither a class nor a priority. Null: there is none. */
  readonly defaultClass: JobPriorityClass | null;
};

export async function intakeRow(executor: Executor, namespace: string): Promise<IntakeRow> {
  return onlyRow(await executor.query<IntakeRow>(INTAKE_ROW, [namespace]));
}

const INTAKE_ROW = `
select (select row_to_json(n) from (
          select project, default_queue as "defaultQueue", pod_policy as "podPolicy" from namespaces where name = $1
        ) n) as namespace,
       (select row_to_json(c) from (${FIND_DEFAULT}) c) as "defaultClass"`;
