/** PostgreSQL behind a pooler: what is recognized at the start, and what the service says. */
import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import pg from "pg";
import { migrateDatabase } from "../../../src/adapters/store/db/migrate-server.ts";
import { openPostgres } from "../../../src/adapters/store/db/postgres.ts";
import { recognizePooler } from "../../../src/compose/pooler.ts";
import { UnavailableError } from "../../../src/runtime/unavailable-error.ts";
import { type PgbouncerOptions, pgbouncerProgram, startPgbouncer } from "../../support/pgbouncer.ts";
import { createDatabase, postgresOptions, postgresServer } from "../../support/postgres.ts";
import { freePort } from "../../support/redis-server.ts";
import { ServeChild } from "../../support/serve-process.ts";

const server = await postgresServer();
const IGNORES = { ignore_startup_parameters: "statement_timeout, idle_in_transaction_session_timeout" };
const STATEMENT_MS = 30_000;

const skip = server === null || pgbouncerProgram() === null;

describe("a database", { skip }, () => {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  let limited: Awaited<ReturnType<typeof createDatabase>>;
  before(async () => {
    database = await createDatabase(server ?? "");
    limited = await createDatabase(server ?? "");
    const client = new pg.Client(limited.url);
    await client.connect();
    const name = new URL(limited.url).pathname.slice(1);
    for (const one of ["statement_timeout", "idle_in_transaction_session_timeout"])
      await client.query(`alter database ${name} set ${one} = '30s'`);
    await client.end();
  });
  after(async () => {
    await database.drop();
    await limited.drop();
  });

  async function through(t: TestContext, options: Omit<PgbouncerOptions, "server">) {
    const pooler = await startPgbouncer({ ...options, server: server ?? "" });
    t.after(pooler.stop);
    return pooler.urlOf;
  }
  const recognize = (url: string, directUrl = url) =>
    recognizePooler({ ...postgresOptions(url), directUrl, statementTimeoutMs: STATEMENT_MS });
  const TIMEOUTS = [
    /^idle_in_transaction_session_timeout is not.*alter database/,
    /^statement_timeout is not in force/,
  ];
  const NO_NEWS = /delivers no notifications.*set DATABASE_DIRECT_URL/;

  test("without a pooler lacks nothing", async () => {
    assert.deepEqual(await recognize(database.url), { kind: "usable", warnings: [] });
  });

  for (const [name, settings] of Object.entries({
    "many sessions": {},
    "one session": { default_pool_size: 1 },
    "sessions in turns": { server_round_robin: 1, min_pool_size: 4 },
  })) {
    test(`that lends ${name} for a transaction is refused with what to set, and never migrated`, async (t) => {
      const urlOf = await through(t, { mode: "transaction", settings: { ...IGNORES, ...settings } });
      const found = await recognize(urlOf(limited.url));
      assert.ok(found.kind === "refused", JSON.stringify(found));
      assert.match(found.message, /pool_mode = transaction.*set DATABASE_DIRECT_URL to the address/);
      const migrated = await migrateDatabase({ ...postgresOptions(urlOf(limited.url)), offline: false });
      assert.ok(migrated.kind === "refused");
      assert.match(migrated.message, /set DATABASE_DIRECT_URL/);
    });
  }

  const usable: Readonly<
    Record<
      string,
      { mode: "session" | "transaction"; of: "limited" | "plain"; direct: boolean; warnings: readonly RegExp[] }
    >
  > = {
    "session mode": { mode: "session", of: "limited", direct: false, warnings: [] },
    "session mode without limits": { mode: "session", of: "plain", direct: false, warnings: TIMEOUTS },
    "transaction mode beside a direct address": { mode: "transaction", of: "limited", direct: true, warnings: [] },
    "transaction mode without limits": { mode: "transaction", of: "plain", direct: true, warnings: TIMEOUTS },
  };
  for (const [name, { mode, of, direct, warnings }] of Object.entries(usable)) {
    test(`behind ${name} warns of ${warnings.length === 0 ? "nothing" : "the timeouts"}`, async (t) => {
      const urlOf = await through(t, { mode, settings: IGNORES });
      const { url } = of === "limited" ? limited : database;
      const found = await recognize(urlOf(url), direct ? url : undefined);
      assert.ok(found.kind === "usable", JSON.stringify(found));
      assert.equal(found.warnings.length, warnings.length, JSON.stringify(found));
      for (const [at, warning] of warnings.entries()) assert.match(found.warnings[at] ?? "", warning);
    });
  }

  test("whose direct address leads through a pooler too warns of notifications", async (t) => {
    const urlOf = await through(t, { mode: "transaction", settings: IGNORES });
    const { port } = new URL(urlOf(limited.url));
    const found = await recognize(urlOf(limited.url), urlOf(limited.url).replace("127.0.0.1", "localhost"));
    assert.ok(found.kind === "usable" && found.warnings.length === 1, JSON.stringify([port, found]));
    assert.match(found.warnings[0] ?? "", NO_NEWS);
  });

  test("that lends sessions for a statement is refused", async (t) => {
    const urlOf = await through(t, { mode: "statement", settings: IGNORES });
    const found = await recognize(urlOf(limited.url), limited.url);
    assert.ok(found.kind === "refused", JSON.stringify(found));
    assert.match(found.message, /pool_mode = statement.*set pool_mode = transaction/);
  });

  test("behind a pooler that takes no settings says which to ignore", async (t) => {
    const urlOf = await through(t, { mode: "session" });
    await using db = {
      ...(await openPostgres(postgresOptions(urlOf(database.url)))),
      [Symbol.asyncDispose]: async () => {},
    };
    for (const failing of [() => recognize(urlOf(database.url)), () => db.query("select 1")]) {
      await assert.rejects(failing, (error) => {
        assert.ok(error instanceof UnavailableError);
        assert.match(
          error.message,
          /unsupported startup parameter.*ignore_startup_parameters = statement_timeout, idle/,
        );
        return true;
      });
    }
    await db.close();
  });

  test("behind a pooler ends serve with what to set; with a direct address it serves and warns", async (t) => {
    const urlOf = await through(t, { mode: "transaction", settings: IGNORES });
    const health = `127.0.0.1:${await freePort()}`;
    const env = { DATABASE_URL: urlOf(database.url), REDIS_URL: "", GANGWAY_HTTP_LISTEN: health };
    const refused = new ServeChild("api", env);
    assert.notEqual(await refused.exited(), 0);
    assert.match(refused.output, /set DATABASE_DIRECT_URL to the address of the PostgreSQL server itself/);
    const child = new ServeChild("api", { ...env, DATABASE_DIRECT_URL: database.url });
    t.after(() => child.end("SIGKILL"));
    await child.serving();
    const ready = await fetch(`http://${health}/readyz`);
    assert.equal(ready.status, 200);
    assert.match(await ready.text(), /^\[!\] statement_timeout is not in force.*alter database "gangway_test_/m);
    assert.match(child.output, /database set up incompletely/);
    assert.equal(await child.end("SIGTERM"), 0);
  });
});
