import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A foreign key. A statement that sets its column locks the row that it names for key share. */
export type ForeignKey = {
  readonly table: string;
  readonly column: string;
  readonly parent: string;
  /** True: deleting a row of the parent deletes the rows that name it. */
  readonly cascades: boolean;
};

const MIGRATIONS = join(import.meta.dirname, "../../../migrations");

/** The texts of all migrations, without comments. */
export function migrationTexts(): string {
  const texts = readdirSync(MIGRATIONS).map((file) => readFileSync(join(MIGRATIONS, file), "utf8"));
  return texts.join("\n").replace(/--.*$/gm, "");
}

/** The names of all tables, as the last migration leaves them. */
export function tablesOf(migrations: string): readonly string[] {
  const renamed = [...migrations.matchAll(/\balter table \w+ rename to (\w+)/g)];
  const made = [...migrations.matchAll(/\bcreate table (\w+)/g)];
  return [...new Set([...made, ...renamed].map(([, name = ""]) => name))];
}

/** The foreign keys that columns have in these migrations. */
export function foreignKeysOf(migrations: string): readonly ForeignKey[] {
  return migrations.split(";").flatMap((statement) => {
    const [, table = ""] = /\b(?:create|alter) table (\w+)/.exec(statement) ?? [];
    return [...statement.matchAll(KEY)].map(([, column = "", parent = "", cascade]) => {
      return { table, column, parent, cascades: cascade !== undefined };
    });
  });
}

const KEY = /(\w+) (?:text|uuid)[^,;]*? references (\w+) \(\w+\)( on delete cascade)?/g;
