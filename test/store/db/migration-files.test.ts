import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { SCHEMA_VERSIONS, type SchemaVersions } from "../../../src/adapters/store/db/schema-versions.ts";
import { brokenMigrations, digestOf, RELEASED } from "../migration-rules.ts";

const FOLDER = join(import.meta.dirname, "../../../migrations");

test("the migration files keep the rules", () => {
  const files = readdirSync(FOLDER).map((file) => {
    assert.ok(file.endsWith(".sql"), file);
    return [file.slice(0, -".sql".length), readFileSync(join(FOLDER, file), "utf8")] as const;
  });
  assert.deepEqual(brokenMigrations(new Map(files), SCHEMA_VERSIONS, RELEASED), []);
});

const record = (version: number) => `create table x ();\ncomment on table migrations is 'schema version ${version}';\n`;
const released = { "0001_init": digestOf("init"), "0003_a": digestOf("a"), "0003_b": digestOf("b") };
const old = { "0001_init": "init", "0003_a": "a", "0003_b": "b" };
const oldVersions = [["0001_init"], [], ["0003_a", "0003_b"]];

const kept: Record<string, { files: Record<string, string>; versions: SchemaVersions }> = {
  "files of the last release alone": { files: old, versions: oldVersions },
  "a version with several new files": {
    files: { ...old, "0004_c": record(4), "0005_d": record(4), "0006_e": record(5) },
    versions: [...oldVersions, ["0004_c", "0005_d"], ["0006_e"]],
  },
};
for (const [name, { files, versions }] of Object.entries(kept)) {
  test(`the rules allow ${name}`, () => {
    assert.deepEqual(brokenMigrations(new Map(Object.entries(files)), versions, released), []);
  });
}

const broken: Record<string, { files: Record<string, string>; versions: SchemaVersions; message: RegExp }> = {
  "a new file with a number of the last release": {
    files: { ...old, "0003_aa": record(3) },
    versions: [["0001_init"], [], ["0003_a", "0003_aa", "0003_b"]],
    message: /^0003_aa: its number must be above all others$/,
  },
  "two new files with one number": {
    files: { ...old, "0004_c": record(4), "0004_d": record(4) },
    versions: [...oldVersions, ["0004_c", "0004_d"]],
    message: /^0004_d: its number must be 5/,
  },
  "a new file that leaves a number out": {
    files: { ...old, "0005_c": record(4) },
    versions: [...oldVersions, ["0005_c"]],
    message: /^0005_c: its number must be 4/,
  },
  "a file that no version lists": {
    files: { ...old, "0004_c": record(4) },
    versions: oldVersions,
    message: /^0004_c: SCHEMA_VERSIONS does not list it$/,
  },
  "a listed file that does not exist": {
    files: old,
    versions: [...oldVersions, ["0004_c"]],
    message: /^0004_c: SCHEMA_VERSIONS lists it without a file$/,
  },
  "a file in a version before that of a lower number": {
    files: { ...old, "0004_c": record(5), "0005_d": record(4) },
    versions: [...oldVersions, ["0005_d"], ["0004_c"]],
    message: /^0004_c: SCHEMA_VERSIONS lists it after 0005_d$/,
  },
  "a new file that records no version": {
    files: { ...old, "0004_c": "create table x ();\n" },
    versions: [...oldVersions, ["0004_c"]],
    message: /^0004_c: its last line must be: comment on table migrations is 'schema version 4';$/,
  },
  "a new file that records another version": {
    files: { ...old, "0004_c": record(3) },
    versions: [...oldVersions, ["0004_c"]],
    message: /^0004_c: its last line must be/,
  },
  "a file of the last release that was edited": {
    files: { ...old, "0003_a": "a, edited" },
    versions: oldVersions,
    message: /^0003_a: a release has it, so it must not change$/,
  },
  "a file whose name has no number": {
    files: { ...old, "0004_c": record(4), extra: "" },
    versions: [...oldVersions, ["0004_c", "extra"]],
    message: /^extra: not NNNN_words$/,
  },
};
for (const [name, { files, versions, message }] of Object.entries(broken)) {
  test(`the rules notice ${name}`, () => {
    const found = brokenMigrations(new Map(Object.entries(files)), versions, released);
    assert.ok(
      found.some((line) => message.test(line)),
      found.join("\n") || "nothing was noticed",
    );
  });
}
