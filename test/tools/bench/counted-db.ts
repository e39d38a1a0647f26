import type { Db, Executor } from "../../../src/adapters/store/db/db.ts";

/** An act of a counted database: one statement, or the begin of a transaction of several. */
export type Counted = { readonly kind: "statement"; readonly text: string } | { readonly kind: "transaction" };

/** A database that reports everything that it does. */
export function countedDb(db: Db, count: (what: Counted) => void): Db {
  const counting = (executor: Executor): Executor => ({
    query: (text, params) => {
      count({ kind: "statement", text });
      return executor.query(text, params);
    },
  });
  return {
    ...db,
    ...counting(db),
    tx: (fn) =>
      db.tx((tx) => {
        count({ kind: "transaction" });
        return fn(counting(tx));
      }),
  };
}
