/** Pruning reads about as many rows as it deletes, and keeps nobody waiting. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { createStore } from "../../../src/adapters/store/store.ts";
import { copyJobs } from "../../support/copy-jobs.ts";
import { onEachDatabase, onPostgres } from "../../support/databases.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { countingRows } from "../../support/rows-read.ts";
import { freshStore, type TestStore } from "../db.ts";
import { NOW, newJob, sentOf } from "../jobs.ts";
import { entriesAfter } from "../log.ts";
import { pruneAll, prunePass } from "../prune.ts";

const OPTIONS = {
  clock: { nowMs: () => NOW },
  kinds: OWN_KINDS,
  openNamespaces: true,
  defaultQueue: "research",
  onAppended: () => {},
};
const KEPT = 4_000;
const GONE = 60;
const PAGE = 20;
/** Rows that a page may read for each that it deletes, and as it looks whether there is more. */
const ROWS_PER_DELETED = 12;
const LOOKS = 20;

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store;
  });

  const count = async (table: string): Promise<number> => {
    const [row] = await db.query<{ count: number }>(`select count(*) as count from ${table}`);
    return row?.count ?? 0;
  };

  /** Jobs that exist, are old, and have request ids, events, entries of the log, and asks of their own. */
  async function fillKept(): Promise<void> {
    const job = newJob({ name: "kept" });
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "kept" });
    await copyJobs(db, { uid: job.uid, count: KEPT, prefix: "kept" });
    await db.query(`
      insert into request_ids (namespace, request_id, sent, job_uid, create_ms)
      select namespace, name, '{}', uid, 1 from jobs where name <> 'kept'`);
    await db.query("insert into asks (hash, ask) select name, '{}' from jobs where name <> 'kept'");
    await db.query("update jobs set ask_hash = name where name <> 'kept'");
    await db.query("delete from unused_asks where hash not like 'gone%'");
  }

  /** Jobs that were deleted before: what is left of them is old. */
  async function fillGone(atMs: number): Promise<void> {
    const job = newJob({ name: "gone", createTimeMs: atMs });
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "gone" });
    await copyJobs(db, { uid: job.uid, count: GONE - 1, prefix: "gone" });
    await db.query("insert into asks (hash, ask) select name, '{}' from jobs where name like 'gone%'");
    await db.query("update jobs set ask_hash = name where name like 'gone%'");
    await db.query(GONE_IDS);
    await db.query(GONE_ENTRIES, [atMs]);
    await db.query(GONE_EVENTS, [atMs]);
    await db.query("delete from jobs where name like 'gone%'");
    while ((await store.watch.sequence()).more);
  }

  test("a pass reads few rows however many jobs exist, and deletes what is left of those that are gone", async () => {
    await fillGone(NOW - 10);
    await fillKept();
    await db.query("analyze");
    while ((await store.watch.sequence()).more);
    const counting = countingRows(db);
    const counted = createStore(counting, OPTIONS);
    for (const kind of ["changes", "events", "asks"] as const) {
      const rowsBefore = counting.rows();
      const deleted = await prunePass(counted, { kind, beforeMs: NOW - 5, limit: PAGE });
      const rows = counting.rows() - rowsBefore;
      assert.ok(deleted >= GONE, `${deleted} of ${kind}`);
      assert.ok(rows <= (deleted + LOOKS) * ROWS_PER_DELETED, `${kind}: ${rows} rows for ${deleted}`);
    }
    assert.equal(await count("request_ids"), KEPT + 1);
    assert.equal(await count("job_events where name like 'gone%'"), 0);
    assert.equal(await count("job_changes where change = 'DELETED'"), 0);
    assert.equal(await count("asks where hash like 'gone%'"), 0);
    assert.equal(await count("asks where hash like 'kept%'"), KEPT);
    // Each note is looked at once more, for jobs that were being written.
    await prunePass(store, { kind: "asks", beforeMs: 0, limit: PAGE });
    assert.equal(await count("unused_asks"), 0);
  });

  test("a pass with nothing to delete reads next to nothing, however many old request ids there are", async () => {
    await fillKept();
    await db.query("analyze");
    const counting = countingRows(db);
    const counted = createStore(counting, OPTIONS);
    await pruneAll(counted, NOW - 5);
    assert.ok(counting.rows() <= LOOKS, `${counting.rows()} rows`);
  });

  test("request ids stay until the entry of their job's deletion is old", async () => {
    await fillGone(NOW);
    await pruneAll(store, NOW, PAGE);
    assert.equal(await count("request_ids"), GONE);
    await pruneAll(store, NOW + 1, PAGE);
    assert.equal(await count("request_ids"), 0);
  });

  test("what a wrong clock has stamped in the future goes with older rows that come after it", async () => {
    const YEAR_MS = 365 * 86_400_000;
    await fillGone(NOW - 10);
    const ahead = `where id = (select min(id) from `;
    await db.query(`update job_changes set at_ms = $1 ${ahead} job_changes)`, [NOW + YEAR_MS]);
    await db.query(`update job_events set at_ms = $1 ${ahead} job_events)`, [NOW + YEAR_MS]);
    const job = newJob({ name: "young" });
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    await db.query("update job_events set at_ms = $1 where name = 'young'", [NOW + YEAR_MS]);
    while ((await store.watch.sequence()).more);
    await pruneAll(store, NOW - 5, PAGE);
    assert.deepEqual(await db.query("select distinct name from job_events"), [{ name: "young" }]);
    assert.deepEqual(await db.query("select distinct job_uid as uid from job_changes"), [{ uid: job.uid }]);
  });

  test("entries that a pass has left behind when its process ended go with the next pass", async () => {
    await fillGone(NOW - 10);
    await db.query("update job_log set pruned_to = head");
    assert.ok((await prunePass(store, { kind: "changes", beforeMs: 0, limit: PAGE })) > GONE);
    assert.equal(await count("job_changes"), 0);
    assert.equal(await count("request_ids"), 0);
  });
});

onPostgres((openDb) => {
  test("changes get positions, and readers read, while a page of old entries is being deleted", async () => {
    await using parts = new AsyncDisposableStack();
    const db = await openDb();
    parts.defer(() => db.close());
    const { store } = await freshStore(db);
    const create = async (name: string) => {
      const job = newJob({ name });
      await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    };
    await create("old");
    await store.watch.sequence();
    const locked = Promise.withResolvers<void>();
    const free = Promise.withResolvers<void>();
    const holding = db.tx(async (tx) => {
      await tx.query("select id from job_changes where position = 1 for update");
      locked.resolve();
      await free.promise;
    });
    await locked.promise;
    const pruning = store.watch.prune("changes", { beforeMs: NOW + 1, nowMs: NOW, after: 0, limit: PAGE });
    for (let waits = false; !waits; ) {
      const rows = await db.query(
        "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
      );
      waits = rows.length > 0;
    }
    await create("young");
    assert.equal((await store.watch.sequence()).head.position, 2);
    assert.equal((await entriesAfter(store, 1, 10)).entries.length, 1);
    assert.equal((await entriesAfter(store, 0, 10)).gap, true);
    free.resolve();
    await holding;
    assert.deepEqual(await pruning, { deleted: 1, next: null });
  });
});

const GONE_IDS = `
insert into request_ids (namespace, request_id, sent, job_uid, create_ms)
select namespace, name, '{}', uid, 1 from jobs where name like 'gone-%'`;

const GONE_ENTRIES = `
insert into job_changes (job_uid, version, change, job, previous_phase, previous_cluster, at_ms)
select j.uid, 2, 'DELETED', c.job, 'WAITING', '', $1
  from jobs j cross join (select job from job_changes limit 1) c
 where j.name like 'gone%'`;

const GONE_EVENTS = `
insert into job_events (job_uid, namespace, name, version, type, reason, message, at_ms)
select uid, namespace, name, 1, 'Normal', 'Made', 'made', $1 from jobs where name like 'gone%'`;
