/** The tokens of sessions are renewed, whatever the issuer and the database do meanwhile. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { openMemoryDb } from "../support/databases.ts";
import { startConsole } from "./console.ts";

const HOUR_MS = 3_600_000;
/** Less than a minute before the tokens expire. */
const DUE_MS = HOUR_MS - 59_000;
let db: Db;
before(async () => {
  db = await openMemoryDb();
});
after(() => db.close());

test("a stream ends once a renewed token names other groups", async (t) => {
  const { provider, ...service } = await startConsole(t, db);
  provider.people.set("ann", ["admins", "users"]);
  const browser = await service.logIn();
  const streamOf = async () => {
    const stream = service.watchJobs(browser, new AbortController().signal);
    assert.equal((await stream.next()).done, false);
    return stream;
  };
  const stream = await streamOf();
  provider.people.set("ann", ["users"]);
  service.passes(DUE_MS);
  await assert.rejects(stream.next(), /the stream ends here, because the caller's groups have changed: call again/);
  assert.deepEqual(JSON.parse((await service.whoAmI(browser)).body).identity.groups, ["login:users"]);
  await (await streamOf()).return?.();
});
