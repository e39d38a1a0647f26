/** How many rows statements read, by their plans: it does not depend on the machine. */
import type { Db, Executor } from "../../src/adapters/store/db/db.ts";

/** A node of a plan as `explain (analyze, format json)` tells it. */
export type PlanNode = {
  readonly "Node Type": string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Index Recheck"?: number;
  readonly Plans?: readonly PlanNode[];
};

/** The rows that the scans of tables and indexes of a plan have looked at. */
export function rowsRead(node: PlanNode): number {
  const below = (node.Plans ?? []).reduce((sum, one) => sum + rowsRead(one), 0);
  if (!/^(Seq|Index|Bitmap).* Scan$/.test(node["Node Type"])) return below;
  const looked =
    node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0);
  return below + looked * node["Actual Loops"];
}

/** A database that counts the rows that its statements read in transactions. Each statement runs twice. */
export function countingRows(db: Db): Db & { readonly rows: () => number } {
  let rows = 0;
  const counting = (tx: Executor): Executor => ({
    query: async (text, params) => {
      if (!/^\s*(select|with|update|delete)\b/.test(text) || text.includes("set_config")) return tx.query(text, params);
      await tx.query("savepoint counting");
      const plans = await tx.query<{ "QUERY PLAN": readonly { readonly Plan: PlanNode }[] }>(
        `explain (analyze, format json) ${text}`,
        params,
      );
      await tx.query("rollback to savepoint counting");
      for (const plan of plans) for (const { Plan } of plan["QUERY PLAN"]) rows += rowsRead(Plan);
      return tx.query(text, params);
    },
  });
  const tx: Db["tx"] = (fn) => db.tx((one) => fn(counting(one)));
  const query: Db["query"] = (text, params) => tx((one) => one.query(text, params));
  return { ...db, tx, query, rows: () => rows };
}
