import type { PoolClient } from "pg";
import { UnavailableError } from "../../runtime/unavailable-error.ts";
import type { Db, Executor } from "./db.ts";
import { parseInt8 } from "./int8.ts";
import { isAway, lostRace, translated } from "./postgres-error.ts";

export type PostgresOptions = {
  readonly url: string;
  /** At most so many connections at a time. */
  readonly poolMax: number;
  /** How long a call waits for a connection, a new one or one that comes free. */
  readonly connectTimeoutMs: number;
  /** The server ends a statement that runs for longer, and a transaction that idles for longer. */
  readonly statementTimeoutMs: number;
  /** A connection that nobody used for so long is closed. */
  readonly idleTimeoutMs: number;
  /** Told of connections that were lost while nobody used them; nothing stops for it. */
  readonly onError: (error: unknown) => void;
};

/** A transaction that loses against others so often in a row is given up: by then it is no accident. */
const ATTEMPTS_MAX = 5;
/** Pause before the second attempt, on average; it grows with each. */
const RETRY_MS = 10;
/** The server says that a statement took too long; a server that says nothing is given up so much later. */
const SILENCE_MS = 5_000;
/** Unused connections ask the system this often whether the other side still lives. */
const KEEP_ALIVE_MS = 10_000;
const INT8_OID = 20;

/**
 * A pool of connections to a PostgreSQL server, opened as they are needed and again after the server was away. Does not migrate. Where the
 * server is away, calls throw `UnavailableError`; of a transaction that was committing it is then not known whether it did.
 */
export async function openPostgres(options: PostgresOptions): Promise<Db> {
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.poolMax,
    connectionTimeoutMillis: options.connectTimeoutMs,
    idleTimeoutMillis: options.idleTimeoutMs,
    statement_timeout: options.statementTimeoutMs,
    idle_in_transaction_session_timeout: options.statementTimeoutMs,
    query_timeout: options.statementTimeoutMs + SILENCE_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: "gangway",
    types: {
      getTypeParser: (oid: number) => (oid === INT8_OID ? parseInt8 : pg.types.getTypeParser(oid)),
    },
  });
  pool.on("error", options.onError);
  let closed: Promise<void> | null = null;
  const withClient = async <T>(work: (client: PoolClient) => Promise<T>): Promise<T> => {
    if (closed !== null) throw new UnavailableError("the database is closed");
    try {
      return await useClient(await pool.connect(), work);
    } catch (error) {
      throw translated(error);
    }
  };
  return {
    query: (text, params) => withClient((client) => executor(client).query(text, params)),
    tx: (fn) => withRetries(() => withClient((client) => transaction(client, fn))),
    close: () => {
      closed ??= pool.end();
      return closed;
    },
  };
}

/** Lends a connection for one piece of work. One that broke, or whose state is not known, is not used again. */
async function useClient<T>(client: PoolClient, work: (client: PoolClient) => Promise<T>): Promise<T> {
  let broken = false;
  const onError = () => {
    broken = true;
  };
  // A connection that breaks between two statements says so by an event alone, which ends the process if nobody listens.
  client.on("error", onError);
  try {
    return await work(client);
  } catch (error) {
    broken ||= isAway(error);
    throw error;
  } finally {
    client.off("error", onError);
    client.release(broken);
  }
}

async function transaction<T>(client: PoolClient, fn: (tx: Executor) => Promise<T>): Promise<T> {
  await client.query("begin");
  try {
    const result = await fn(executor(client));
    const ended = await client.query("commit");
    // The server answers a commit of a failed transaction with its rollback, not with an error.
    if (ended.command !== "COMMIT") throw new Error("a transaction went on after a statement of it had failed");
    return result;
  } catch (error) {
    if (!isAway(error)) await client.query("rollback");
    throw error;
  }
}

async function withRetries<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      if (!lostRace(error)) throw error;
      if (attempt === ATTEMPTS_MAX) {
        throw new UnavailableError(`the transaction lost against others ${attempt} times in a row`, { cause: error });
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS * attempt * 2 * Math.random()));
    }
  }
}

function executor(client: PoolClient): Executor {
  return {
    query: async <R>(text: string, params: readonly unknown[] = []) => {
      const result = await client.query(text, [...params]);
      return result.rows as R[];
    },
  };
}
