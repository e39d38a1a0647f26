import { UnavailableError } from "../../../runtime/unavailable-error.ts";
import { markRestored } from "./begin-anew.ts";
import { migrate, readSchema } from "./migrate.ts";
import { sessionUse } from "./pooler.ts";
import { translated } from "./postgres-error.ts";
import { schemaAdvice, schemaFit } from "./schema.ts";

export type MigrateOptions = {
  /** A direct connection, without a pooler: the lock that keeps two runs apart belongs to a session. */
  readonly url: string;
  readonly connectTimeoutMs: number;
  /** True: no other process uses this database, so a schema that is several versions behind may be migrated too. */
  readonly offline: boolean;
  /** True: the database was restored from a back-up, and no process uses it. Omitted: false. */
  readonly restored?: boolean;
};

type MigrationOutcome =
  /** The migrations that ran, in their order; empty if the schema was current. */
  | { readonly kind: "migrated"; readonly ran: readonly string[] }
  /** The schema is too new, or too old for programs that may still run on it, or a pooler lends sessions. */
  | { readonly kind: "refused"; readonly message: string }
  /** The server cannot be reached. */
  | { readonly kind: "unavailable"; readonly message: string };

/**
 * Updates the schema of a PostgreSQL database to this program's. Of several calls at once, one runs after the other.
 */
export async function migrateDatabase(options: MigrateOptions): Promise<MigrationOutcome> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({
    connectionString: options.url,
    connectionTimeoutMillis: options.connectTimeoutMs,
    application_name: "gangway migrate",
  });
  let lost: unknown = null;
  client.on("error", (error) => {
    lost = error;
  });
  try {
    await client.connect();
    const use = await sessionUse(options);
    if (use !== "own") return { kind: "refused", message: NEEDS_SESSION };
    const fit = schemaFit(await readSchema(queriesOf(client)));
    const isAlone = options.offline || options.restored === true;
    const allowed = fit.kind === "fits" || fit.kind === "behind" || (fit.kind === "farBehind" && isAlone);
    if (!allowed) return { kind: "refused", message: schemaAdvice(fit) ?? "" };
    const ran = await migrate(queriesOf(client));
    if (options.restored) await markRestored(queriesOf(client));
    return { kind: "migrated", ran };
  } catch (error) {
    const cause = translated(lost ?? error);
    if (cause instanceof UnavailableError) return { kind: "unavailable", message: cause.message };
    throw cause;
  } finally {
    await client.end().catch(() => undefined);
  }
}

const NEEDS_SESSION =
  "a migration needs a session of its own, and the database's address leads through a pooler that lends sessions for " +
  "one transaction only (PgBouncer: pool_mode = transaction): set DATABASE_DIRECT_URL to the server itself";

type Client = { readonly query: (text: string, values?: unknown[]) => Promise<{ readonly rows: unknown[] }> };

function queriesOf(client: Client) {
  return {
    query: (text: string, params?: readonly unknown[]) =>
      params === undefined ? client.query(text) : client.query(text, [...params]),
  };
}
