/**
 * Finds out what a pooler between this process and PostgreSQL takes away: sessions, notifications, or the limits of
 * time that connections ask for.
 */
import type { Client, ClientConfig } from "pg";
import { translated } from "./postgres-error.ts";

/** How a connection's transactions run. */
export type SessionUse =
  /** All in one session of the server: there is no pooler, or it lends a session to a connection until that ends. */
  | "own"
  /** In sessions that other connections use too, where prepared statements of one connection fail. */
  | "shared"
  /** In sessions that other connections use too. The pooler takes care of prepared statements. */
  | "sharedPrepared"
  /** Not at all: the pooler lends a session for one statement. */
  | "perStatement";

/** A limit of time that each connection asks for, in milliseconds. */
export type AskedLimits = {
  readonly statement_timeout: number;
  readonly idle_in_transaction_session_timeout: number;
};

export type ServerAddress = { readonly url: string; readonly connectTimeoutMs: number };

/** A busy pooler may give a connection the same session twice by chance. */
const ROUNDS = 3;
/** How long a notification may take. Nothing is wrong with a server that is only slow, so the time is long. */
const NOTIFICATION_MS = 5_000;
/** A pooler whose sessions are all in use lets statements wait. */
const ANSWER_MS = 30_000;

/** Compares the sessions of two transactions of one connection, while another connection holds one. */
export async function sessionUse(address: ServerAddress): Promise<SessionUse> {
  await using one = await connection(address);
  await using other = await connection(address);
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      const found = await compareSessions(one.client, other.client);
      if (found !== "own") return found;
    }
    return "own";
  } catch (error) {
    if (error instanceof Error && error.message.includes("statement pooling")) return "perStatement";
    throw translated(error);
  }
}

async function compareSessions(one: Client, other: Client): Promise<Exclude<SessionUse, "perStatement">> {
  const statement = { name: `gangway probe ${crypto.randomUUID()}`, text: "select 1" };
  await one.query("begin");
  const first = await sessionOf(one);
  await one.query(statement);
  await one.query("commit");
  await other.query("begin");
  try {
    // One session of two connections that both live: it is lent.
    const held = await sessionOf(other);
    const asker = held === first ? other : one;
    if (asker === one) {
      await one.query("begin");
      if ((await sessionOf(one)) === first) return "own";
    }
    return await asker.query(statement).then(
      () => "sharedPrepared",
      () => "shared",
    );
  } finally {
    await other.query("rollback");
    await one.query("rollback");
  }
}

async function sessionOf(client: Client): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]?.pid;
}

/** The limits that are not in force for a connection that has asked for them: they are absent, or longer. */
export async function missingLimits(
  address: ServerAddress,
  asked: AskedLimits,
): Promise<readonly (keyof AskedLimits)[]> {
  await using one = await connection(address, asked);
  const { rows } = await one.client.query<{ name: keyof AskedLimits; ms: number }>(FIND_LIMITS, [Object.keys(asked)]);
  return rows.filter(({ name, ms }) => ms === 0 || ms > asked[name]).map(({ name }) => name);
}

const FIND_LIMITS = `
select name, setting::int as ms from pg_settings where name = any($1) order by name`;

/** True if a connection to this address hears what another one says. */
export async function notifies(address: ServerAddress): Promise<boolean> {
  await using listener = await connection(address);
  await using speaker = await connection(address);
  const channel = `gangway_probe_${crypto.randomUUID().replaceAll("-", "")}`;
  let heard = false;
  listener.client.on("notification", () => {
    heard = true;
  });
  await listener.client.query(`listen ${channel}`);
  await speaker.client.query("select pg_notify($1, '')", [channel]);
  const endMs = performance.now() + NOTIFICATION_MS;
  // A session gets its notifications before the answer of its next statement at the latest.
  while (!heard && performance.now() < endMs) {
    await listener.client.query("select pg_sleep(0.01)");
  }
  await listener.client.query(`unlisten ${channel}`);
  return heard;
}

async function connection({ url, connectTimeoutMs }: ServerAddress, asked: Partial<AskedLimits> = {}) {
  const { default: pg } = await import("pg");
  const config: ClientConfig = {
    connectionString: url,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: ANSWER_MS,
    application_name: "gangway start",
    ...asked,
  };
  const client = new pg.Client(config);
  // The statement under way fails too, and tells.
  client.on("error", () => undefined);
  const close = () => client.end().catch(() => undefined);
  try {
    await client.connect();
  } catch (error) {
    await close();
    throw translated(error);
  }
  return { client, [Symbol.asyncDispose]: close };
}
