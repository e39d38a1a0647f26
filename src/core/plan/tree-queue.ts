import type { TreeQueue } from "../quota/tree.ts";
import type { PlanQueue } from "./snapshot.ts";

/** A queue as the tree of limits takes it. */
export function treeQueue({ name, parent, quotas }: PlanQueue): TreeQueue {
  return {
    name,
    parent,
    quotas: quotas.map(({ flavor, nominal, borrowingLimit = null, lendingLimit = null }) => {
      return { pool: flavor, nominal, borrowingLimit, lendingLimit };
    }),
  };
}
