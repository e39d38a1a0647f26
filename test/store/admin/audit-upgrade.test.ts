/** A database with entries of the audit log gets partitions, while a program of the version before goes on writing. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PGlite } from "@electric-sql/pglite";
import pg from "pg";
import { appendAudit, listAudit } from "../../../src/adapters/store/admin/audit.ts";
import { pruneAudit } from "../../../src/adapters/store/admin/audit-partitions.ts";
import { migrate } from "../../../src/adapters/store/db/migrate.ts";
import { migrateDatabase } from "../../../src/adapters/store/db/migrate-server.ts";
import { openPostgres } from "../../../src/adapters/store/db/postgres.ts";
import { SCHEMA_VERSIONS } from "../../../src/adapters/store/db/schema-versions.ts";
import { createEmptyDatabase, onServer, postgresOptions, postgresServer } from "../../support/postgres.ts";
import { clientOf, runReleased } from "../last-release.ts";

const server = await postgresServer();
const NAMES = SCHEMA_VERSIONS.flat();
const BEFORE = NAMES.slice(0, NAMES.indexOf("0029_audit-partitions"));
const YEAR = 365 * 86_400_000;

/** The statements of the program before. */
const INSERT = `
insert into audit_entries (at_ms, actor, action, subject, reason, details, method, peer, rpc, request_id, outcome)
values ($1, 'ann', 'CreateQueue', $2, '', '{}', '', '', '', '', 'OK')`;
const LIST = "select subject from audit_entries where actor = 'ann' order by id desc limit 100";
const PRUNE = `
with old as (
  select id from audit_entries
   where id in (select id from audit_entries where at_ms < $1 order by at_ms, id limit 1000)
   order by id for update skip locked
), gone as (
  delete from audit_entries e using old where e.id = old.id returning 1
)
select count(*)::int as count from gone`;

test("PGlite: entries of any age are kept in their order, and ids go on behind those that were deleted", async () => {
  const pglite = await PGlite.create();
  try {
    const client = clientOf(pglite);
    await runReleased(client, BEFORE);
    const nowMs = Date.now();
    for (const [at, subject] of [
      [nowMs - YEAR, "old"],
      [nowMs + YEAR, "ahead"],
      [nowMs, "now"],
      [nowMs, "deleted"],
    ] as const) {
      await client.query(INSERT, [at, subject]);
    }
    await client.query("delete from audit_entries where subject = 'deleted'");
    await migrate(client);
    await client.query(INSERT, [nowMs + 3 * YEAR, "beyond"]);
    const { rows } = await client.query(
      "select id::int, subject, tableoid::regclass::text from audit_entries order by 1",
    );
    assert.deepEqual(
      rows.map((row) => Object.values(row as object)),
      [
        [1, "old", "audit_entries_first"],
        [2, "ahead", "audit_entries_first"],
        [3, "now", "audit_entries_first"],
        [5, "beyond", "audit_entries_default"],
      ],
    );
  } finally {
    await pglite.close();
  }
});

describe("on PostgreSQL", { skip: server === null }, () => {
  test("a program of the version before writes, lists and deletes entries during and after the upgrade", async () => {
    const { url, drop } = await createEmptyDatabase(server ?? "");
    const old = new pg.Client({ connectionString: url });
    const waiting = new pg.Client({ connectionString: url });
    const db = await openPostgres(postgresOptions(url));
    try {
      await onServer(url, (client) => runReleased(client, BEFORE));
      await old.connect();
      await waiting.connect();
      const nowMs = Date.now();
      const insert = (client: pg.Client, timeMs: number, subject: string) =>
        client.query({ name: "insert", text: INSERT, values: [timeMs, subject] });
      await insert(old, nowMs - YEAR, "old");
      await insert(waiting, nowMs, "known");

      await old.query("begin");
      await insert(old, nowMs, "open");
      const migrating = migrateDatabase({ url, connectTimeoutMs: 10_000, offline: false });
      const waiters = async (count: number) => {
        const text = "select count(*) from pg_locks where relation = 'audit_entries'::regclass and not granted";
        while ((await db.query<{ count: number }>(text))[0]?.count !== count);
      };
      await waiters(1);
      const meanwhile = insert(waiting, nowMs, "meanwhile");
      await waiters(2);
      await old.query("commit");
      assert.equal((await migrating).kind, "migrated");
      await meanwhile;

      await insert(old, nowMs, "after");
      await db.tx((tx) =>
        appendAudit(tx, { timeMs: nowMs, actor: "ann", action: "CreateQueue", subject: "new", details: {} }),
      );
      const all = ["new", "after", "meanwhile", "open", "known", "old"];
      const { rows } = await old.query(LIST);
      assert.deepEqual(
        rows.map(({ subject }) => subject),
        all,
      );
      const page = await listAudit(db, {
        filter: { actor: "ann", action: null, subject: null },
        pageSize: 100,
        after: null,
      });
      assert.deepEqual(page !== "badCursor" && page.entries.map(({ subject }) => subject), all);
      assert.deepEqual((await old.query(PRUNE, [nowMs])).rows, [{ count: 1 }]);
      assert.equal(await pruneAudit(db, nowMs + 1), 5);
    } finally {
      await old.end();
      await waiting.end();
      await db.close();
      await drop();
    }
  });
});
