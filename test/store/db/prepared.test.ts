/** What the server keeps of the statements that run most often. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openPostgres } from "../../../src/adapters/store/db/postgres.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { createDatabase, postgresOptions, postgresServer } from "../../support/postgres.ts";
import { NOW, newJob, nextUid, sentOf } from "../jobs.ts";
import { allocation, freshLedger, releaseOf } from "../ledger-fixture.ts";

/** The server plans a statement this often before it may keep a plan. */
const PLANNED = 5;
const REPEATS = 3 * PLANNED;

const server = await postgresServer();

test("the server keeps one plan of each prepared statement", { skip: server === null }, async () => {
  const database = await createDatabase(server ?? "");
  const db = await openPostgres({ ...postgresOptions(database.url), poolMax: 1 });
  try {
    const { store, epoch, grant } = await freshLedger(db);
    for (let at = 0; at < REPEATS; at++) {
      const [first, second, third] = [0, 1, 2].map((of) => newJob({ name: `job-${at}-${of}`, uid: nextUid() }));
      assert.ok(first && second && third);
      await store.intake.facts({ namespace: first.namespace, queue: "research" });
      await store.intake.createJob({ job: first, sent: sentOf(first), requestId: "" });
      const more = [second, third].map((job) => ({ job, sent: sentOf(job), requestId: job.name }));
      await store.intake.createJobs(more);
      for (const which of [{ namespace: first.namespace, name: first.name }, { uid: first.uid }]) {
        assert.equal((await store.reads.getJob(which))?.job.uid, first.uid);
      }
      await store.watch.sequence();
      const granted = grant([allocation()]);
      const committed = await ledgerAt(store, NOW).commit(epoch, [granted]);
      assert.deepEqual(committed, [{ kind: "committed" }]);
      const [released] = await ledgerAt(store, NOW).release([releaseOf({ token: "t1" })]);
      assert.ok(released?.kind === "released");
      await ledgerAt(store).confirmReleases([released.ref]);
    }
    const planned = "select statement, custom_plans as times from pg_prepared_statements where custom_plans > $1";
    assert.deepEqual(await db.query(planned, [PLANNED]), []);
    const kept = "select count(*) as kept from pg_prepared_statements where generic_plans > 0";
    const [{ kept: count } = { kept: 0 }] = await db.query<{ kept: number }>(kept);
    assert.ok(count >= 15, `${count} statements have a plan that is kept`);
  } finally {
    await db.close();
    await database.drop();
  }
});
