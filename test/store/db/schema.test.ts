import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { migrateDatabase } from "../../../src/adapters/store/db/migrate-server.ts";
import { openPostgres } from "../../../src/adapters/store/db/postgres.ts";
import {
  requireSchema,
  SchemaError,
  type SchemaFit,
  schemaAdvice,
  schemaFit,
} from "../../../src/adapters/store/db/schema.ts";
import { SCHEMA_VERSIONS, type SchemaVersions } from "../../../src/adapters/store/db/schema-versions.ts";
import { createDatabase, createEmptyDatabase, postgresOptions, postgresServer } from "../../support/postgres.ts";

const server = await postgresServer();

const KNOWN: SchemaVersions = [["0001_init"], ["0002_more"], ["0003_a", "0003_b", "0004_c"]];
const OWN = KNOWN.flat();
const cases: Record<
  string,
  { applied: readonly string[]; recorded?: number; kind: SchemaFit["kind"]; advice?: RegExp }
> = {
  "the same schema fits": { applied: OWN, recorded: 3, kind: "fits" },
  "the next version's schema fits, however many migrations it has": {
    applied: [...OWN, "0005_next", "0006_next"],
    recorded: 4,
    kind: "fits",
  },
  "a schema two versions on is refused": {
    applied: [...OWN, "0005_next", "0006_later"],
    recorded: 5,
    kind: "ahead",
    advice: /is version 5, this program runs on 3 and 4: install/,
  },
  "without a record, the number of an unknown migration is its version": {
    applied: [...OWN, "0005_next"],
    kind: "ahead",
    advice: /is version 5, this program runs on 3 and 4: install/,
  },
  "an empty database needs a migration": {
    applied: [],
    kind: "behind",
    advice: /no schema yet: run `gangway migrate`/,
  },
  "the schema of the version before needs a migration": {
    applied: OWN.slice(0, 2),
    kind: "behind",
    advice: /is version 2, this program needs 3: run `gangway migrate`/,
  },
  "a schema that lacks a part of its version needs a migration": {
    applied: ["0001_init", "0002_more", "0003_b"],
    kind: "behind",
    advice: /is version 3 and lacks migrations of this program \(0003_a, 0004_c\): run `gangway migrate`/,
  },
  "a schema several versions behind is refused": {
    applied: OWN.slice(0, 1),
    kind: "farBehind",
    advice: /one version at a time, or stop every gangway process .* `gangway migrate --offline`/,
  },
};
for (const [name, { applied, recorded = null, kind, advice }] of Object.entries(cases)) {
  test(name, () => {
    const fit = schemaFit({ applied, recordedVersion: recorded }, KNOWN);
    assert.equal(fit.kind, kind);
    if (kind === "fits") assert.equal(schemaAdvice(fit), null);
    else assert.match(schemaAdvice(fit) ?? "", advice ?? /gangway/);
  });
}

test("migrating reports a server that cannot be reached as unavailable", async () => {
  const url = "postgres://nobody@127.0.0.1:1/none";
  const outcome = await migrateDatabase({ url, connectTimeoutMs: 1_000, offline: false });
  assert.equal(outcome.kind, "unavailable");
});

describe("on PostgreSQL", { skip: server === null }, () => {
  test("of many migrations at once, one makes the schema and the others wait for it", async () => {
    const { url, drop } = await createEmptyDatabase(server ?? "");
    const db = await openPostgres(postgresOptions(url));
    try {
      await assert.rejects(requireSchema(db), SchemaError);
      const options = { url, connectTimeoutMs: 10_000, offline: false };
      const outcomes = await Promise.all(Array.from({ length: 4 }, () => migrateDatabase(options)));
      const ran = outcomes.map((outcome) => (outcome.kind === "migrated" ? outcome.ran : null));
      assert.deepEqual(
        ran.toSorted((a, b) => (b?.length ?? 0) - (a?.length ?? 0)),
        [SCHEMA_VERSIONS.flat(), [], [], []],
      );
      await requireSchema(db);
      assert.equal((await db.query("select 1 from bucket_leases")).length, 1024);
    } finally {
      await db.close();
      await drop();
    }
  });

  test("a program runs on the schema of the next version, and refuses later ones", async () => {
    const { url, drop } = await createDatabase(server ?? "");
    const db = await openPostgres(postgresOptions(url));
    try {
      const options = { url, connectTimeoutMs: 10_000, offline: true };
      const newest = SCHEMA_VERSIONS.length;
      const add = (version: number) =>
        db.query("insert into migrations (name, run_on) values ($1, now())", [`${String(version).padStart(4, "0")}_x`]);
      // Migrations of the first versions recorded none: the numbers of their files tell it.
      await db.query("comment on table migrations is null");
      await add(newest + 1);
      await requireSchema(db);
      assert.deepEqual(await migrateDatabase(options), { kind: "migrated", ran: [] });
      await add(newest + 2);
      await assert.rejects(requireSchema(db), /install the version of gangway/);
      assert.equal((await migrateDatabase(options)).kind, "refused");
      // The later program records that both of its migrations belong to the next version.
      await db.query(`comment on table migrations is 'schema version ${newest + 1}'`);
      await requireSchema(db);
      await db.query(`comment on table migrations is 'schema version ${newest + 2}'`);
      await assert.rejects(requireSchema(db), /install the version of gangway/);
      assert.equal((await migrateDatabase(options)).kind, "refused");
    } finally {
      await db.close();
      await drop();
    }
  });
});
