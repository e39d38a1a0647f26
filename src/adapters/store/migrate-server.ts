import { appliedMigrations, migrate, ownMigrations } from "./migrate.ts";
import { translated } from "./postgres-error.ts";
import { SchemaError, schemaAdvice, schemaFit } from "./schema.ts";

export type MigrateOptions = {
  /** A direct connection: the lock that keeps two runs apart belongs to a session. */
  readonly url: string;
  readonly connectTimeoutMs: number;
  /** Nothing else runs on this database: a schema that is several versions behind may be migrated too. */
  readonly offline: boolean;
};

/** The migrations that were run, in their order; empty where the schema was current. */
export type Migrated = { readonly ran: readonly string[] };

/**
 * Brings the schema of a PostgreSQL database up to this program's. Runs at the same time follow each other. Throws `SchemaError` where the schema
 * is too new or too old for that, and `UnavailableError` where the server is away; then nothing has changed.
 */
export async function migrateServer(options: MigrateOptions): Promise<Migrated> {
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
    const fit = schemaFit(await appliedMigrations(queriesOf(client)), ownMigrations());
    const allowed = fit.kind === "fits" || fit.kind === "behind" || (fit.kind === "farBehind" && options.offline);
    if (!allowed) throw new SchemaError(schemaAdvice(fit) ?? "");
    return { ran: await migrate(queriesOf(client)) };
  } catch (error) {
    throw translated(lost ?? error);
  } finally {
    await client.end().catch(() => undefined);
  }
}

type Client = { readonly query: (text: string, values?: unknown[]) => Promise<{ readonly rows: unknown[] }> };

function queriesOf(client: Client) {
  return {
    query: (text: string, params?: readonly unknown[]) =>
      params === undefined ? client.query(text) : client.query(text, [...params]),
  };
}
