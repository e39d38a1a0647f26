import type { Db, Executor } from "../../src/adapters/store/db/db.ts";

/** A database that remembers the statements of each transaction, and that can fail at one of them. */
export class StatementDb implements Db {
  readonly #db: Db;
  readonly transactions: string[][] = [];
  /** The number of the statement, from 1, at which every transaction fails. Null: none fails. */
  failAt: number | null = null;

  constructor(db: Db) {
    this.#db = db;
  }

  query: Executor["query"] = (text, params) => this.#db.query(text, params);

  tx: Db["tx"] = (fn) =>
    this.#db.tx((tx) => {
      const statements: string[] = [];
      this.transactions.push(statements);
      return fn({
        query: async (text, params) => {
          statements.push(text);
          if (statements.length === this.failAt) throw new Error(`statement ${this.failAt} failed`);
          return tx.query(text, params);
        },
      });
    });

  close = (): Promise<void> => this.#db.close();
}
