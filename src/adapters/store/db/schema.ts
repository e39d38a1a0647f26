import type { Executor } from "./db.ts";
import { type MigrationClient, readSchema } from "./migrate.ts";
import { type AppliedSchema, SCHEMA_VERSIONS, type SchemaVersions, versionOf } from "./schema-versions.ts";

/**
 * Whether a program can run on a schema. Migrations only add. So a program of version N runs on schema N and, while a
 * fleet is being updated, on schema N+1.
 */
export type SchemaFit =
  | { readonly kind: "fits" }
  /** `gangway migrate` makes it fit; programs of the version before keep running meanwhile. */
  | {
      readonly kind: "behind";
      readonly schema: number;
      readonly program: number;
      /** The migrations that the database has not run yet. */
      readonly due: readonly string[];
    }
  /** Several versions behind: programs that run on that schema cannot run on the new one. */
  | { readonly kind: "farBehind"; readonly schema: number; readonly program: number }
  | { readonly kind: "ahead"; readonly schema: number; readonly program: number };

/** Compares the schema of a database with the versions that a program knows. An empty database is just behind. */
export function schemaFit(found: AppliedSchema, known: SchemaVersions = SCHEMA_VERSIONS): SchemaFit {
  const [schema, program] = [versionOf(found, known), known.length];
  if (schema > program + 1) return { kind: "ahead", schema, program };
  if (schema !== 0 && schema < program - 1) return { kind: "farBehind", schema, program };
  const applied = new Set(found.applied);
  const due = known.flat().filter((name) => !applied.has(name));
  return due.length === 0 ? { kind: "fits" } : { kind: "behind", schema, program, due };
}

/** Tells a person what to do about a schema that does not fit; null if it fits. */
export function schemaAdvice(fit: SchemaFit): string | null {
  switch (fit.kind) {
    case "fits":
      return null;
    case "behind":
      return behindAdvice(fit);
    case "farBehind":
      return (
        `the database's schema is version ${fit.schema}, this program needs ${fit.program}: ` +
        "update by one version at a time, or stop every gangway process of this database and " +
        "run `gangway migrate --offline`"
      );
    case "ahead":
      return (
        `the database's schema is version ${fit.schema}, this program runs on ${fit.program} and ${fit.program + 1}: ` +
        "install the version of gangway that the schema was made for"
      );
  }
}

function behindAdvice({ schema, program, due }: Extract<SchemaFit, { kind: "behind" }>): string {
  if (schema === 0) return "the database has no schema yet: run `gangway migrate`";
  const lacks =
    schema < program
      ? `is version ${schema}, this program needs ${program}`
      : `is version ${schema} and lacks migrations of this program (${due.join(", ")})`;
  return `the database's schema ${lacks}: run \`gangway migrate\``;
}

/** This program cannot use the database as it is. The message says why, and what to do. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
}

/** Throws `SchemaError` unless this program can run on the database as it is. */
export async function requireSchema(db: Executor): Promise<void> {
  const advice = schemaAdvice(schemaFit(await readSchema(queriesOf(db))));
  if (advice !== null) throw new SchemaError(advice);
}

function queriesOf(db: Executor): MigrationClient {
  return { query: async (text, params) => ({ rows: await db.query(text, params) }) };
}
