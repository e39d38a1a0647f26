import pg from "pg";
import { waitUntil } from "../support/bounded.ts";

/** A write that a gate stops: each row of a table for which the condition holds, before it is written. */
export type GatedStep = { readonly table: string; readonly on: "insert" | "update"; readonly when: string };

const CLASS = 7_441_002;

/**
 * Stops the processes of a service at chosen writes to its database. The transaction of a process waits at a closed
 * gate, with all its locks. All gates are closed at the start.
 */
export class StepGates<Name extends string> implements AsyncDisposable {
  readonly #client: pg.Client;
  readonly #keys: ReadonlyMap<Name, number>;

  private constructor(client: pg.Client, keys: ReadonlyMap<Name, number>) {
    this.#client = client;
    this.#keys = keys;
  }

  static async close<Name extends string>(url: string, steps: Readonly<Record<Name, GatedStep>>) {
    const client = new pg.Client({ connectionString: url });
    client.on("error", () => {});
    await client.connect();
    const keys = new Map<Name, number>();
    for (const [name, { table, on, when }] of Object.entries(steps) as [Name, GatedStep][]) {
      const key = keys.size + 1;
      keys.set(name, key);
      await client.query("select pg_advisory_lock($1, $2)", [CLASS, key]);
      await client.query(`
        create function gate_${key}() returns trigger language plpgsql as
        $$ begin perform pg_advisory_xact_lock_shared(${CLASS}, ${key}); return new; end $$;
        create trigger gate_${key} before ${on} on ${table} for each row when (${when})
          execute function gate_${key}()`);
    }
    return new StepGates(client, keys);
  }

  /** Resolves once a process waits at the gate. */
  async reached(name: Name): Promise<void> {
    await waitUntil(`a process waits before ${name}`, async () => (await this.#waiting(name)).length > 0, {
      pollMs: 10,
    });
  }

  /** Ends the transactions that wait at the gate, as the server does once it sees that their process is gone. */
  async endWaiting(name: Name): Promise<void> {
    for (const pid of await this.#waiting(name)) await this.#client.query("select pg_terminate_backend($1)", [pid]);
    await waitUntil(`nobody waits before ${name}`, async () => (await this.#waiting(name)).length === 0, {
      pollMs: 10,
    });
  }

  async open(name: Name): Promise<void> {
    await this.#client.query("select pg_advisory_unlock($1, $2)", [CLASS, this.#keys.get(name)]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.end();
  }

  async #waiting(name: Name): Promise<readonly number[]> {
    const { rows } = await this.#client.query<{ pid: number }>(WAITING, [CLASS, this.#keys.get(name)]);
    return rows.map(({ pid }) => pid);
  }
}

const WAITING = `
select pid
  from pg_locks
 where locktype = 'advisory' and not granted and classid = $1 and objid = $2
   and database = (select oid from pg_database where datname = current_database())`;
