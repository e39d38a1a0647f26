import type { Executor } from "./db.ts";
import { appliedMigrations, ownMigrations } from "./migrate.ts";

/**
 * How a program and a schema stand to each other. A schema's version is the number that its newest migration begins with; migrations of one
 * release share it. Migrations only add, so that a program of version N runs on schema N and, while a fleet is being updated, on N+1.
 */
export type SchemaFit =
  | { readonly kind: "fits" }
  /** `gangway migrate` makes it fit; programs of the version before go on meanwhile. */
  | { readonly kind: "behind"; readonly schema: number; readonly program: number }
  /** Several versions behind: what still runs on that schema cannot run on this program's. */
  | { readonly kind: "farBehind"; readonly schema: number; readonly program: number }
  | { readonly kind: "ahead"; readonly schema: number; readonly program: number };

/** Compares the migrations that a database has seen with those that the program brings. An empty database is just behind. */
export function schemaFit(applied: readonly string[], own: readonly string[]): SchemaFit {
  const [schema, program] = [versionOf(applied), versionOf(own)];
  if (schema > program + 1) return { kind: "ahead", schema, program };
  if (schema !== 0 && schema < program - 1) return { kind: "farBehind", schema, program };
  const seen = new Set(applied);
  return own.every((name) => seen.has(name)) ? { kind: "fits" } : { kind: "behind", schema, program };
}

/** What to do where a schema does not fit; null where it does. */
export function schemaAdvice(fit: SchemaFit): string | null {
  switch (fit.kind) {
    case "fits":
      return null;
    case "behind":
      return fit.schema === 0
        ? "the database has no schema yet: run `gangway migrate`"
        : `the database's schema is version ${fit.schema}, this program needs ${fit.program}: run \`gangway migrate\``;
    case "farBehind":
      return (
        `the database's schema is version ${fit.schema}, this program needs ${fit.program}: update by one version at a time, or stop every ` +
        "gangway process of this database and run `gangway migrate --offline`"
      );
    case "ahead":
      return (
        `the database's schema is version ${fit.schema}, this program runs on ${fit.program} and ${fit.program + 1}: ` +
        "install the version of gangway that the schema was made for"
      );
  }
}

/** Nothing may be done with this database as it is; the message says why and what to do. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
}

/** Throws `SchemaError` unless this program can run on the database as it is. */
export async function requireSchema(db: Executor): Promise<void> {
  const advice = schemaAdvice(schemaFit(await appliedMigrations(rowsOf(db)), ownMigrations()));
  if (advice !== null) throw new SchemaError(advice);
}

function rowsOf(db: Executor) {
  return { query: async (text: string, params?: readonly unknown[]) => ({ rows: await db.query(text, params) }) };
}

function versionOf(names: readonly string[]): number {
  return names.reduce((newest, name) => Math.max(newest, Number.parseInt(name, 10) || 0), 0);
}
