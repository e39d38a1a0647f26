import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { DatabaseHeldError, holdDatabase } from "../../src/adapters/store/sole-process.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { lineTo } from "../support/cut-line.ts";
import { createDatabase, postgresServer } from "../support/postgres.ts";

const server = await postgresServer();

describe("on PostgreSQL", { skip: server === null }, () => {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  before(async () => {
    database = await createDatabase(server ?? "");
  });
  after(() => database.drop());

  function hold(url = database.url, onLost: (error: unknown) => void = (error) => assert.ifError(error)) {
    return holdDatabase({ url, connectTimeoutMs: 10_000, onLost });
  }

  test("of many processes one holds a database, until it lets go", async () => {
    const outcomes = await Promise.allSettled(Array.from({ length: 4 }, () => hold()));
    const held = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    const refused = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
    assert.equal(held.length, 1);
    assert.ok(refused.every((error) => error instanceof DatabaseHeldError && /REDIS_URL/.test(error.message)));
    await held[0]?.release();
    await (await hold()).release();
  });

  test("who loses the session is told, and another may hold the database", async () => {
    const line = await lineTo(database.url);
    const told = new Promise((resolve) => void hold(line.url, resolve).then(() => line.cut()));
    assert.ok((await told) instanceof UnavailableError);
    let next: Awaited<ReturnType<typeof hold>> | null = null;
    while (next === null) next = await hold().catch(() => null);
    await next.release();
    await line.close();
  });
});

test("a database that cannot be reached is unavailable", async () => {
  const options = { url: "postgres://nobody@127.0.0.1:1/none", connectTimeoutMs: 1_000, onLost: () => {} };
  await assert.rejects(holdDatabase(options), UnavailableError);
});
