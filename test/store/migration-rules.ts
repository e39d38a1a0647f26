import { createHash } from "node:crypto";
import type { SchemaVersions } from "../../src/adapters/store/db/schema-versions.ts";

/** The migrations of the last release, with digests of their text: a release's migrations never change. */
export const RELEASED: Readonly<Record<string, string>> = {
  "0001_init": "f51cb512c9d12580",
  "0002_cluster_credentials": "08a71bf23c3bbb9c",
  "0002_counters-holder": "926233dc5dcefc2c",
  "0002_members": "d63bb5a01cd45ffd",
  "0002_trace-parent": "c4e3dacd6a1811ab",
  "0003_cached-results": "260bb6e9371d5b28",
  "0003_gang-scheduler": "4999b0b9ff7b9b74",
  "0003_resource-manager": "ed1deb4deefaf0f0",
  "0003_shrunk-tokens": "42d29e6c98e9d1aa",
  "0003_suspended": "f0d9254f94b00739",
  "0003_token-tombstones": "d7ebd116002fe342",
};

/** Migrations that are older than the rule of rising numbers. */
const LEGACY_NUMBER_MAX = 3;

/**
 * Everything about the migration files that breaks the rules of `schema-versions.ts`. `files` maps the names of
 * migrations to their SQL.
 */
export function brokenMigrations(
  files: ReadonlyMap<string, string>,
  versions: SchemaVersions,
  released: Readonly<Record<string, string>>,
): readonly string[] {
  const names = [...files.keys()].sort();
  return [
    ...names.flatMap((name) => (/^\d{4}_[a-z0-9_-]+$/.test(name) ? [] : [`${name}: not NNNN_words`])),
    ...releaseRules(files, released),
    ...tableRules(names, versions),
    ...numberRules(names.filter((name) => !isLegacy(name))),
    ...versions.flatMap((group, at) =>
      group.filter((name) => !isLegacy(name)).flatMap((name) => recordRules(name, files.get(name) ?? "", at + 1)),
    ),
  ];
}

export function digestOf(sql: string): string {
  return createHash("sha256").update(sql).digest("hex").slice(0, 16);
}

function numberOf(name: string): number {
  return Number.parseInt(name, 10);
}

function isLegacy(name: string): boolean {
  return numberOf(name) <= LEGACY_NUMBER_MAX;
}

function releaseRules(files: ReadonlyMap<string, string>, released: Readonly<Record<string, string>>) {
  const changed = Object.entries(released).filter(([name, digest]) => digestOf(files.get(name) ?? "") !== digest);
  const added = [...files.keys()].filter((name) => isLegacy(name) && !(name in released));
  return [
    ...changed.map(([name]) => `${name}: a release has it, so it must not change`),
    ...added.map((name) => `${name}: its number must be above all others`),
  ];
}

/** The numbers of new migrations have no gaps: so a file that is added must take the number above the highest. */
function numberRules(names: readonly string[]) {
  return names.flatMap((name, at) => {
    const due = LEGACY_NUMBER_MAX + 1 + at;
    return numberOf(name) === due ? [] : [`${name}: its number must be ${due}, one above the file before it`];
  });
}

function tableRules(names: readonly string[], versions: SchemaVersions) {
  const listed = versions.flat();
  return [
    ...names.filter((name) => !listed.includes(name)).map((name) => `${name}: SCHEMA_VERSIONS does not list it`),
    ...listed.filter((name) => !names.includes(name)).map((name) => `${name}: SCHEMA_VERSIONS lists it without a file`),
    ...listed.flatMap((name, at) => {
      const before = listed[at - 1];
      return before === undefined || before < name ? [] : [`${name}: SCHEMA_VERSIONS lists it after ${before}`];
    }),
  ];
}

function recordRules(name: string, sql: string, version: number) {
  const record = `comment on table migrations is 'schema version ${version}';`;
  return sql.trimEnd().endsWith(`\n${record}`) ? [] : [`${name}: its last line must be: ${record}`];
}
