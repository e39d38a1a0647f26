import type { Client } from "pg";
import { UnavailableError } from "../../runtime/unavailable-error.ts";
import { translated } from "./postgres-error.ts";

export type SoleProcessOptions = {
  /** A direct connection: the lock belongs to a session. */
  readonly url: string;
  readonly connectTimeoutMs: number;
  /**
   * The session was lost and the lock with it: another process may serve by now. Nothing is granted twice even so, since that one raises the
   * epochs under which this one records; this one should end.
   */
  readonly onLost: (error: unknown) => void;
};

/** Another process serves this database, and counters that live in one process alone cannot be shared. */
export class DatabaseHeldError extends Error {
  override readonly name = "DatabaseHeldError";
}

/** Any number, as long as every program that serves a database takes the same; migrations take another. */
const LOCK = 7_441_443;
/** Without a word from the session for so long, the system asks whether the other side still lives. */
const KEEP_ALIVE_MS = 10_000;

/**
 * Holds a database for this process alone until `release`. Throws `DatabaseHeldError` while another process holds it, `UnavailableError` where the
 * server is away.
 */
export async function holdDatabase(options: SoleProcessOptions): Promise<{ readonly release: () => Promise<void> }> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({
    connectionString: options.url,
    connectionTimeoutMillis: options.connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: "gangway sole process",
  });
  let holding = false;
  const lost = (error: unknown) => {
    if (!holding) return;
    holding = false;
    options.onLost(translated(error));
  };
  client.on("error", lost);
  client.on("end", () => lost(new UnavailableError("the session that holds the database has ended")));
  try {
    await client.connect();
    await take(client);
    holding = true;
  } catch (error) {
    await client.end().catch(() => undefined);
    throw translated(error);
  }
  return {
    release: async () => {
      holding = false;
      await client.end().catch(() => undefined);
    },
  };
}

async function take(client: Client): Promise<void> {
  const { rows } = await client.query<{ taken: boolean }>("select pg_try_advisory_lock($1) as taken", [LOCK]);
  if (rows[0]?.taken === true) return;
  throw new DatabaseHeldError(
    "another process serves this database with counters of its own: stop it, or set REDIS_URL for every process so that they share them",
  );
}
