import type { Db, Executor } from "../../src/adapters/store/db/db.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";

/**
 * A database on PostgreSQL that loses the connection of one transaction: after the statement of that number, before
 * the first one (0), or only after the commit ("answer").
 */
export class KillingDb implements Db {
  readonly #db: Db;
  /** Kills the next transaction whose first statement contains this text. Null: none. */
  next: { readonly statement: string; readonly after: number | "answer" } | null = null;
  /** The number of statements of the last transaction that was to be killed. */
  statements = 0;
  kills = 0;

  constructor(db: Db) {
    this.#db = db;
  }

  query: Executor["query"] = (text, params) => this.#db.query(text, params);

  tx: Db["tx"] = async (fn) => {
    const { next } = this;
    let [count, isMeant] = [0, false];
    const result = await this.#db.tx((tx) => {
      count = 0;
      const query: Executor["query"] = async (text, params) => {
        isMeant ||= next !== null && text.includes(next.statement);
        if (isMeant && next?.after === 0 && count === 0) await this.#kill(tx);
        const rows = await tx.query(text, params);
        count += 1;
        if (isMeant && next?.after === count) await this.#kill(tx);
        return rows as never;
      };
      return fn({ query });
    });
    if (!isMeant) return result;
    this.statements = count;
    this.next = null;
    if (next?.after !== "answer") return result;
    this.kills += 1;
    throw new UnavailableError("the answer to the commit was lost");
  };

  close = (): Promise<void> => this.#db.close();

  async #kill(tx: Executor): Promise<void> {
    this.next = null;
    this.kills += 1;
    const [row] = await tx.query<{ pid: number }>("select pg_backend_pid() as pid");
    await this.#db.query("select pg_terminate_backend($1)", [row?.pid]);
  }
}
