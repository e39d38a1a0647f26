import type { Socket } from "node:net";
import type { PoolClient } from "pg";
import { UnavailableError } from "../../../runtime/unavailable-error.ts";
import { type Db, type Executor, withPending } from "./db.ts";
import { parseInt8 } from "./int8.ts";
import { isAway, lostRace, translated } from "./postgres-error.ts";
import { preparedName } from "./prepared.ts";

export type PostgresOptions = {
  readonly url: string;
  /** The highest number of connections at a time. */
  readonly poolMax: number;
  /** How long a call waits for a new connection or for one to become free. */
  readonly connectTimeoutMs: number;
  /** The server ends a statement that runs longer, and a transaction that idles longer. */
  readonly statementTimeoutMs: number;
  /** A connection is closed after it was unused for so long. */
  readonly idleTimeoutMs: number;
  /**
   * True: the URL leads through a pooler, which may run each transaction in another session, so no statement is
   * prepared. Omitted: false.
   */
  readonly pooled?: boolean;
  /** Called when an unused connection is lost. Calls continue on other connections. */
  readonly onError: (error: unknown) => void;
};

/** How often a transaction is tried that loses races against others. */
const ATTEMPTS_MAX = 5;
/** The average pause before the second attempt; it grows with each attempt. */
const RETRY_MS = 10;
/** The server ends a statement that takes too long. If it does not, the call fails so much later. */
const SILENCE_MS = 5_000;
/** After so long without traffic, the system checks whether the other side of a connection still answers. */
const KEEP_ALIVE_MS = 10_000;
const INT8_OID = 20;

/**
 * A pool of connections to a PostgreSQL server. It opens them when they are needed, also after the server was away.
 * Does not migrate. Calls throw `UnavailableError` while the server cannot be reached. A transaction that was
 * committing then may have been committed or not.
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
    // Statements that are not awaited one by one share a round trip.
    pipeline: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: "gangway",
    types: {
      getTypeParser: (oid: number) => (oid === INT8_OID ? parseInt8 : pg.types.getTypeParser(oid)),
    },
  });
  pool.on("error", options.onError);
  // The server compiles statements that it takes to be expensive, for 60 ms, each time that they run. Ours are short. A
  // connection that breaks meanwhile fails its first call.
  if (options.pooled !== true)
    pool.on("connect", (client) => void client.query("set jit = off").catch(() => undefined));
  const executorOf = options.pooled === true ? unprepared : executor;
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
    query: (text, params) => withClient((client) => executorOf(client).query(text, params)),
    tx: (fn) => withRetries(() => withClient((client) => transaction(client, executorOf(client), fn))),
    close: () => {
      closed ??= pool.end();
      return closed;
    },
  };
}

/** How often a connection is used before it plans its prepared statements again: the tables may have grown. */
const USES_OF_PLANS = 250;
const uses = new WeakMap<PoolClient, number>();

/** Sent along with what the connection does next. */
function refreshPlans(client: PoolClient): void {
  const count = (uses.get(client) ?? 0) + 1;
  uses.set(client, count);
  if (count % USES_OF_PLANS === 0) client.query("discard plans").catch(() => undefined);
}

/** Uses a connection for one piece of work. Drops it afterwards if it broke or its state is unknown. */
async function useClient<T>(client: PoolClient, work: (client: PoolClient) => Promise<T>): Promise<T> {
  let broken = false;
  const onError = () => {
    broken = true;
  };
  // A connection that breaks between two statements emits an event, which ends the process unless there is a listener.
  client.on("error", onError);
  refreshPlans(client);
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

/** The commit shares a round trip with the statements that `fn` has not awaited. */
async function transaction<T>(client: PoolClient, executor: Executor, fn: (tx: Executor) => Promise<T>): Promise<T> {
  const tx = withPending(begun(client, executor));
  try {
    const result = await fn(tx);
    shareAPacket(client);
    const ending = client.query("commit");
    // If it fails too, it fails for the same reason as the statement before it.
    ending.catch(() => undefined);
    await tx.settled();
    const ended = await ending;
    // If a statement failed, the server answers the commit with a rollback, not with an error.
    if (ended.command !== "COMMIT")
      throw new Error("a transaction tried to commit although one of its statements had failed");
    return result;
  } catch (error) {
    if (!isAway(error)) await client.query("rollback");
    throw error;
  }
}

/**
 * Begins a transaction. Statements that only read or lock are sent along with the begin. A statement that may write
 * waits for it, since it would be a commit of its own if the begin failed; and so do those that come after it.
 */
function begun(client: PoolClient, { query }: Executor): Executor {
  shareAPacket(client);
  const beginning = client.query("begin");
  let open = false;
  let waiting = 0;
  beginning.then(
    () => {
      open = true;
    },
    () => undefined,
  );
  return {
    query: async <R>(text: string, params?: readonly unknown[]) => {
      if (waiting > 0 || !(open || onlyReads(text))) {
        waiting += 1;
        await beginning;
        waiting -= 1;
      }
      const rows = query<R>(text, params);
      if (!open) await Promise.all([beginning, rows]);
      return rows;
    },
  };
}

/** False for all that write, and also for some that do not: a part that locks rows has the word `update` too. */
function onlyReads(text: string): boolean {
  return READS.test(text) || (HAS_PARTS.test(text) && !WRITES.test(text));
}

const READS = /^\s*(select|set transaction)\b/i;
const HAS_PARTS = /^\s*with\b/i;
const WRITES = /\b(insert|update|delete|merge)\b/i;

/**
 * What is sent on a connection within one turn of the event loop leaves together. A packet for each message of a
 * statement would cost a system call here, and wake the server each time.
 */
function shareAPacket(client: PoolClient): void {
  const { stream } = (client as PoolClient & { readonly connection: { readonly stream: Socket } }).connection;
  if (stream.writableCorked > 0) return;
  stream.cork();
  process.nextTick(() => stream.uncork());
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

function unprepared(client: PoolClient): Executor {
  return executor(client, () => undefined);
}

function executor(client: PoolClient, nameOf: (text: string) => string | undefined = preparedName): Executor {
  return {
    query: async <R>(text: string, params: readonly unknown[] = []) => {
      const name = nameOf(text);
      const values = [...params];
      shareAPacket(client);
      const result = await client.query(name === undefined ? { text, values } : { name, text, values });
      return result.rows as R[];
    },
  };
}
