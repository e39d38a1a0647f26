import type { Db, Executor } from "../../src/adapters/store/db/db.ts";

/** A database that remembers how many bytes each statement has read, as JSON, and what the rows contained. */
export class CountingDb implements Db {
  readonly #db: Db;
  /** The rows that each statement returned, as text. */
  reads: string[] = [];

  constructor(db: Db) {
    this.#db = db;
  }

  get largest(): number {
    return Math.max(0, ...this.reads.map((text) => text.length));
  }

  query: Executor["query"] = async (text, params) => this.#counted(await this.#db.query(text, params));

  tx: Db["tx"] = (fn) =>
    this.#db.tx((tx) => fn({ query: async (text, params) => this.#counted(await tx.query(text, params)) }));

  close = (): Promise<void> => this.#db.close();

  // biome-ignore lint/suspicious/noExplicitAny: rows of any statement
  #counted(rows: readonly any[]) {
    this.reads.push(JSON.stringify(rows));
    return rows;
  }
}
