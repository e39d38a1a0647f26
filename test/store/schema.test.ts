import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ownMigrations } from "../../src/adapters/store/migrate.ts";
import { migrateDatabase } from "../../src/adapters/store/migrate-server.ts";
import { openPostgres } from "../../src/adapters/store/postgres.ts";
import {
  requireSchema,
  SchemaError,
  type SchemaFit,
  schemaAdvice,
  schemaFit,
} from "../../src/adapters/store/schema.ts";
import { createEmptyDatabase, postgresOptions, postgresServer } from "../support/postgres.ts";

const server = await postgresServer();

const OWN = ["0001_init", "0002_more", "0003_a", "0003_b"];
const cases: Record<string, { applied: readonly string[]; kind: SchemaFit["kind"]; advice?: RegExp }> = {
  "the same schema fits": { applied: OWN, kind: "fits" },
  "the next version's schema fits": { applied: [...OWN, "0004_next"], kind: "fits" },
  "a schema two versions on is refused": {
    applied: [...OWN, "0004_next", "0005_later"],
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
  "a release's schema of which a part is missing needs a migration": { applied: OWN.slice(0, 3), kind: "behind" },
  "a schema several versions behind is refused": {
    applied: OWN.slice(0, 1),
    kind: "farBehind",
    advice: /one version at a time, or stop every gangway process .* `gangway migrate --offline`/,
  },
};
for (const [name, { applied, kind, advice }] of Object.entries(cases)) {
  test(name, () => {
    const fit = schemaFit(applied, OWN);
    assert.equal(fit.kind, kind);
    if (kind === "fits") assert.equal(schemaAdvice(fit), null);
    else assert.match(schemaAdvice(fit) ?? "", advice ?? /gangway/);
  });
}

test("a server that nobody runs cannot be migrated, and is said to be away", async () => {
  const url = "postgres://nobody@127.0.0.1:1/none";
  const outcome = await migrateDatabase({ url, connectTimeoutMs: 1_000, offline: false });
  assert.equal(outcome.kind, "unavailable");
});

describe("on PostgreSQL", { skip: server === null }, () => {
  test("many migrations at once follow each other: one makes the schema, and programs run on it then", async () => {
    const { url, drop } = await createEmptyDatabase(server ?? "");
    const db = await openPostgres(postgresOptions(url));
    try {
      await assert.rejects(requireSchema(db), SchemaError);
      const options = { url, connectTimeoutMs: 10_000, offline: false };
      const outcomes = await Promise.all(Array.from({ length: 4 }, () => migrateDatabase(options)));
      const ran = outcomes.map((outcome) => (outcome.kind === "migrated" ? outcome.ran : null));
      assert.deepEqual(
        ran.toSorted((a, b) => (b?.length ?? 0) - (a?.length ?? 0)),
        [ownMigrations(), [], [], []],
      );
      await requireSchema(db);
      assert.equal((await db.query("select 1 from bucket_leases")).length, 1024);
    } finally {
      await db.close();
      await drop();
    }
  });

  test("a schema of a later program is left as it is: on the next version one runs, on later ones not", async () => {
    const { url, drop } = await createEmptyDatabase(server ?? "");
    const db = await openPostgres(postgresOptions(url));
    try {
      const options = { url, connectTimeoutMs: 10_000, offline: true };
      await migrateDatabase(options);
      const newest = Number.parseInt(ownMigrations().at(-1) ?? "", 10);
      const add = (version: number) =>
        db.query("insert into migrations (name, run_on) values ($1, now())", [`${String(version).padStart(4, "0")}_x`]);
      await add(newest + 1);
      await requireSchema(db);
      assert.deepEqual(await migrateDatabase(options), { kind: "migrated", ran: [] });
      await add(newest + 2);
      await assert.rejects(requireSchema(db), /install the version of gangway/);
      assert.equal((await migrateDatabase(options)).kind, "refused");
    } finally {
      await db.close();
      await drop();
    }
  });
});
