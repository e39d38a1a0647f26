import assert from "node:assert/strict";
import { test } from "node:test";
import { readConfig } from "../../src/config/config.ts";

const URL_ = "postgres://u:secret@db:5432/gangway";

const good: Record<string, { env: Record<string, string>; database: object | null }> = {
  "nothing is said": { env: {}, database: null },
  "only a URL is given": {
    env: { DATABASE_URL: URL_ },
    database: {
      url: URL_,
      directUrl: URL_,
      poolMax: 10,
      connectTimeoutMs: 5_000,
      statementTimeoutMs: 30_000,
      idleTimeoutMs: 60_000,
    },
  },
  "everything is given": {
    env: {
      DATABASE_URL: URL_,
      DATABASE_DIRECT_URL: "postgresql://direct/gangway",
      DATABASE_POOL_MAX: "25",
      DATABASE_CONNECT_TIMEOUT_MS: "1",
      DATABASE_STATEMENT_TIMEOUT_MS: "2",
      DATABASE_IDLE_TIMEOUT_MS: "3",
    },
    database: {
      url: URL_,
      directUrl: "postgresql://direct/gangway",
      poolMax: 25,
      connectTimeoutMs: 1,
      statementTimeoutMs: 2,
      idleTimeoutMs: 3,
    },
  },
};
for (const [name, { env, database }] of Object.entries(good)) {
  test(`the database's settings are read where ${name}`, () => {
    assert.deepEqual(readConfig("/tmp", env).database, database);
  });
}

const refused: Record<string, { env: Record<string, string>; error: RegExp }> = {
  "another kind of database": {
    env: { DATABASE_URL: "mysql://u:secret@db/x" },
    error: /^DATABASE_URL is not of the form/,
  },
  "a direct URL that is none": {
    env: { DATABASE_URL: URL_, DATABASE_DIRECT_URL: "secret" },
    error: /^DATABASE_DIRECT_URL is not of the form/,
  },
  "a pool of one": {
    env: { DATABASE_URL: URL_, DATABASE_POOL_MAX: "1" },
    error: /DATABASE_POOL_MAX is "1"; allowed are 2/,
  },
  "a time with a unit": {
    env: { DATABASE_URL: URL_, DATABASE_CONNECT_TIMEOUT_MS: "5s" },
    error: /DATABASE_CONNECT_TIMEOUT_MS is "5s"; allowed are 1 to 600000/,
  },
};
for (const [name, { env, error }] of Object.entries(refused)) {
  test(`refused without showing a password: ${name}`, () => {
    assert.throws(
      () => readConfig("/tmp", env),
      (thrown) => thrown instanceof Error && error.test(thrown.message) && !thrown.message.includes("secret"),
    );
  });
}
