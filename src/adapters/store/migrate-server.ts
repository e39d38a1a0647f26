import { UnavailableError } from "../../runtime/unavailable-error.ts";
import { appliedMigrations, migrate, ownMigrations } from "./migrate.ts";
import { translated } from "./postgres-error.ts";
import { schemaAdvice, schemaFit } from "./schema.ts";

export type MigrateOptions = {
  /** A direct connection: the lock that keeps two runs apart belongs to a session. */
  readonly url: string;
  readonly connectTimeoutMs: number;
  /** Nothing else runs on this database: a schema that is several versions behind may be migrated too. */
  readonly offline: boolean;
};

export type MigrateOutcome =
  /** The migrations that were run, in their order; none where the schema was current. */
  | { readonly kind: "migrated"; readonly ran: readonly string[] }
  /** The schema is too new, or too old for programs that may still run on it. Nothing has changed. */
  | { readonly kind: "refused"; readonly message: string }
  /** The server is away. */
  | { readonly kind: "unavailable"; readonly message: string };

/** Brings the schema of a PostgreSQL database up to this program's. Runs at the same time follow each other. */
export async function migrateDatabase(options: MigrateOptions): Promise<MigrateOutcome> {
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
    if (!allowed) return { kind: "refused", message: schemaAdvice(fit) ?? "" };
    return { kind: "migrated", ran: await migrate(queriesOf(client)) };
  } catch (error) {
    const cause = translated(lost ?? error);
    if (cause instanceof UnavailableError) return { kind: "unavailable", message: cause.message };
    throw cause;
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
