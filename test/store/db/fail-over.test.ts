/** A replica that followed asynchronously is promoted, and lacks what the primary acknowledged last. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { openPostgres } from "../../../src/adapters/store/db/postgres.ts";
import { raiseEpoch } from "../../../src/adapters/store/ledger/quota-epoch.ts";
import { CounterState } from "../../../src/core/quota/counter-state.ts";
import { waitUntil } from "../../support/bounded.ts";
import { createDatabase, onServer, postgresOptions } from "../../support/postgres.ts";
import { hasPostgresPrograms, PostgresProcess } from "../../support/postgres-process.ts";
import { allocation, caller, freshLedger } from "../ledger-fixture.ts";

const hasPrograms = hasPostgresPrograms() && spawnSync("pg_basebackup", ["--version"]).status === 0;
const skip = hasPrograms ? false : "needs the programs of PostgreSQL, pg_basebackup too";

/** Opens the domain as a process does that knows nothing: counters that were lost, and a ledger. Grants one token. */
async function fenceOfNewCounters(url: string, token: string): Promise<bigint> {
  const db = await openPostgres(postgresOptions(url));
  try {
    const raised = await raiseEpoch(db, "default", null, { tokensMax: 100, waitersMax: 100 });
    if (raised.kind !== "raised") throw new Error(raised.kind);
    const counters = new CounterState();
    counters.open(raised.epoch, raised);
    const request = { allocations: [allocation({ token })], holder: caller("flyte"), waiter: null, priority: 0 };
    const granted = counters.grant({ ...request, epoch: raised.epoch });
    if (granted.kind !== "granted") throw new Error(granted.kind);
    return granted.fence;
  } finally {
    await db.close();
  }
}

test("fences never go back, although the replica lacks the last epochs and the counters are lost too", {
  skip,
}, async (t) => {
  const primary = await PostgresProcess.start();
  t.after(() => primary.stop());
  const database = await createDatabase(primary.url);
  const db = await openPostgres(postgresOptions(database.url));
  await freshLedger(db);
  await db.close();
  const first = await fenceOfNewCounters(database.url, "first");
  const replica = await PostgresProcess.replicaOf(primary);
  t.after(() => replica.stop());
  await replica.crash();
  const lost: bigint[] = [];
  for (const token of ["a", "b", "c"]) lost.push(await fenceOfNewCounters(database.url, token));
  await primary.crash();
  await replica.start();
  await onServer(replica.url, (client) => client.query("select pg_promote()"));
  const url = new URL(database.url);
  url.port = new URL(replica.url).port;
  await waitUntil("the replica takes writes", () =>
    onServer(replica.url, async (client) => {
      const { rows } = await client.query("select pg_is_in_recovery() as follows");
      return rows[0]?.follows === false;
    }),
  );
  const later = [await fenceOfNewCounters(url.href, "d"), await fenceOfNewCounters(url.href, "e")];
  const given = [first, ...lost, ...later];
  assert.deepEqual(
    given,
    [...given].sort((one, other) => (one < other ? -1 : 1)),
  );
  assert.equal(new Set(given).size, given.length);
});
