import { AMOUNT_MAX } from "../../quota/allocations.ts";
import type { TreeQueue } from "../../quota/tree.ts";
import type { PlanQueue } from "./snapshot.ts";

/** A queue as the tree of limits takes it. */
export function treeQueue({ name, parent, quotas }: PlanQueue): TreeQueue {
  return {
    name,
    parent,
    quotas: quotas.map(({ flavor, nominal, granted = 0, borrowingLimit = null, lendingLimit = null }) => {
      return { pool: flavor, nominal: Math.min(nominal + granted, AMOUNT_MAX), borrowingLimit, lendingLimit };
    }),
  };
}
