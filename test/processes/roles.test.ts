import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { sealKubeconfig } from "../../src/adapters/cluster/credentials.ts";
import { openPostgres } from "../../src/adapters/store/db/postgres.ts";
import { createStore } from "../../src/adapters/store/store.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { createDatabase, postgresOptions, postgresServer } from "../support/postgres.ts";
import { ServeChild } from "../support/serve-process.ts";

const server = await postgresServer();

describe("a registered cluster whose credentials are encrypted", { skip: server === null }, () => {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  before(async () => {
    database = await createDatabase(server ?? "");
    const db = await openPostgres(postgresOptions(database.url));
    const options = {
      clock: systemClock(),
      kinds: OWN_KINDS,
      openNamespaces: false,
      defaultQueue: "default",
      onAppended: () => {},
    };
    const credentials = sealKubeconfig({ name: "default", bytes: randomBytes(32) }, "far", "{}");
    const registered = await createStore(db, options).clusters.register({
      name: "far",
      labels: {},
      flavors: [],
      credentials,
    });
    assert.equal(registered.kind, "done");
    await db.close();
  });
  after(() => database.drop());

  /** The output, until it serves, of a process with these roles and without the key. */
  async function outputOf(roles: string): Promise<string> {
    const child = new ServeChild(roles, { DATABASE_URL: database.url, REDIS_URL: "", GANGWAY_CREDENTIALS_KEY: "" });
    await child.serving();
    assert.equal(await child.end("SIGTERM"), 0);
    return child.output;
  }

  test("is no failure to a planner, which connects to no cluster", async () => {
    const output = await outputOf("planner");
    assert.doesNotMatch(output, /failed/);
    assert.match(output, /clusters: far\n/);
  });

  test("is one failure to a process that serves logs and has no key", async () => {
    const failures = (await outputOf("api")).split("\n").filter((line) => line.includes("cluster call failed"));
    assert.equal(failures.length, 1);
    assert.match(failures[0] ?? "", /GANGWAY_CREDENTIALS_KEY is not set/);
  });
});
