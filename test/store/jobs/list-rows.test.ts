/** Lists read a bounded number of rows, however many other jobs there are. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Db, Executor } from "../../../src/adapters/store/db/db.ts";
import { PLACES_MAX } from "../../../src/adapters/store/jobs/list-jobs.ts";
import { ENDED_MAX } from "../../../src/core/job/request/count.ts";
import type { JobFilter } from "../../../src/core/job/request/filter.ts";
import type { JobOrder } from "../../../src/core/job/request/list.ts";
import { copyJobs } from "../../support/copy-jobs.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { type PlanNode, rowsRead } from "../../support/rows-read.ts";
import { freshStore, type TestStore } from "../db.ts";
import { NO_STATUS, NOW, newJob, sentOf } from "../jobs.ts";

const ALL: JobFilter = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: null, labels: {} };
const WAITING = 5_000;
const SUCCEEDED = 24_000;
const RARE = 20;
const PAGE = 20;
/** The test counts jobs that ended within a week. */
const ENDED = NOW - 3_600_000;
/** The places in one queue, and some rows for each job of the page. */
const ROWS_MAX = PLACES_MAX + 20 * PAGE;
/** A list also counts its jobs, but no more than 10,000 of them. */
const COUNTED_MAX = 10_000;

const ORDERS: readonly JobOrder[] = ["create_time", "create_time desc", "name", "priority desc"];
/** Few jobs have these. */
const FILTERS: Readonly<Record<string, Partial<JobFilter>>> = {
  "a namespace": { namespace: "rare" },
  "two namespaces that a caller sees": { namespaces: ["rare", "rare-too"] },
  "a queue": { queue: "rare" },
  "a label": { labels: { tier: "rare" } },
  "a phase": { phases: ["RUNNING"] },
  "two phases": { phases: ["RUNNING", "STARTING"] },
  "a kind": { kinds: ["MPIJob"] },
  "a cluster without jobs": { cluster: "east" },
  "two queues": { queues: ["rare", "none"] },
  "a caller": { createdBy: ["rare"] },
  "two callers": { createdBy: ["rare", "nobody"] },
  "a project": { project: "rare" },
  "a beginning of the name": { namePrefix: "rare" },
  "a time of creation": { createdBeforeMs: NOW - 50_000 },
  "a time of the end": { endedSinceMs: NOW },
  "a flavor that no job holds": { flavor: "gpu/rare" },
  "a node": { uids: ["01900000-0000-7000-8000-000000000000"] },
  "an end and a caller": { endedSinceMs: NOW, createdBy: ["nobody"] },
};

/** Of these, few have ended lately, or none has. */
const ENDED_FILTERS: Readonly<Record<string, Partial<JobFilter>>> = {
  "a phase": { phases: ["SUCCEEDED"] },
  "a phase that none has": { phases: ["FAILED"] },
  "two phases": { phases: ["SUCCEEDED", "FAILED"] },
  "an end": { endedSinceMs: NOW },
  "an end long ago": { endedSinceMs: 0 },
  "a caller without jobs": { createdBy: ["nobody"], phases: ["SUCCEEDED"] },
};

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  const sent: { text: string; params: readonly unknown[] }[] = [];
  before(async () => {
    db = await openDb();
    store = (await freshStore(noting(db, sent))).store;
    await store.admin.ensureQueue({ name: "rare", strategy: "BEST_EFFORT_FIFO", quotas: [] });
    const waits = newJob({ name: "waits" });
    const ended = { ...NO_STATUS, phase: "SUCCEEDED" as const, completionTimeMs: ENDED };
    const done = newJob({ name: "done", namespace: "done", status: ended });
    for (const job of [waits, done]) await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    for (let at = 0; at < RARE; at += 1) {
      const status = { ...NO_STATUS, phase: "RUNNING" as const };
      const made = newJob({
        createTimeMs: NOW - 60_000,
        name: `rare-${at}`,
        namespace: at % 2 === 0 ? "rare" : "rare-too",
        queue: "rare",
        createdBy: "rare",
        project: "rare",
        status,
      });
      const job = { ...made, spec: { ...made.spec, kind: "MPIJob" as const }, labels: { tier: "rare" } };
      await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    }
    await copyJobs(db, { uid: waits.uid, count: WAITING, prefix: "waits" });
    await copyJobs(db, { uid: done.uid, count: SUCCEEDED, prefix: "done" });
    await db.query("analyze");
  });
  after(() => db.close());

  /** The rows that the statements of a list read, counts of its jobs left out. */
  async function rowsOf(filter: Partial<JobFilter>, order: JobOrder): Promise<number> {
    sent.length = 0;
    const page = await store.reads.listJobs({ filter: { ...ALL, ...filter }, order, pageSize: PAGE, after: null });
    assert.ok(page !== "badCursor");
    return rowsOfSent();
  }

  /** The rows that the statements read which were sent. */
  async function rowsOfSent(): Promise<number> {
    const statements = sent.filter(({ text }) => /^\s*(select|with)\b/.test(text));
    let read = 0;
    for (const { text, params } of statements) {
      const [row] = await db.query<{ "QUERY PLAN": readonly { readonly Plan: PlanNode }[] }>(
        `explain (analyze, format json) ${text}`,
        params,
      );
      const rows = rowsRead(row?.["QUERY PLAN"][0]?.Plan ?? assert.fail("no plan"));
      read += text.includes("as total") ? Math.max(0, rows - COUNTED_MAX) : rows;
    }
    return read;
  }

  for (const order of ORDERS) {
    test(`a page of all jobs by ${order} reads few rows`, async () => {
      const rows = await rowsOf({}, order);
      assert.ok(rows <= ROWS_MAX, `${rows} rows`);
    });
  }

  for (const [name, filter] of Object.entries(FILTERS)) {
    for (const order of ORDERS) {
      test(`a page of the jobs of ${name} by ${order} reads few rows`, async () => {
        const rows = await rowsOf(filter, order);
        assert.ok(rows <= ROWS_MAX, `${rows} rows`);
      });
    }
  }

  for (const order of ORDERS) {
    test(`a page by ${order} of a large namespace and a phase that it lacks reads none of its jobs`, async () => {
      const rows = await rowsOf({ namespace: "done", phases: ["WAITING"] }, order);
      // Each of the jobs that wait may be found by several indexes.
      assert.ok(rows <= ROWS_MAX + 4 * WAITING, `${rows} rows`);
    });
  }

  for (const order of ORDERS) {
    test(`a page of the jobs that wait for a reason by ${order} reads none that has ended`, async () => {
      const rows = await rowsOf({ reasons: ["Rare"] }, order);
      // Each of the jobs that wait may be found by several indexes.
      assert.ok(rows <= ROWS_MAX + 4 * WAITING, `${rows} rows`);
    });
  }

  test("a page of the jobs that have waited longest reads none that has ended", async () => {
    const rows = await rowsOf({ phases: ["WAITING"] }, "wait_since");
    assert.ok(rows <= ROWS_MAX + 4 * WAITING, `${rows} rows`);
  });

  for (const [name, filter] of Object.entries(ENDED_FILTERS)) {
    test(`a page of the jobs with ${name} that ended last reads few rows`, async () => {
      const rows = await rowsOf(filter, "complete_time desc");
      // The count of most of the table may read it in the order of its rows, past those that wait.
      assert.ok(rows <= ROWS_MAX + WAITING, `${rows} rows`);
    });
  }

  for (const [name, filter] of Object.entries(FILTERS)) {
    test(`a count of the jobs of ${name} reads the jobs that have not ended, and few others`, async () => {
      sent.length = 0;
      await store.reads.countJobs({ filter: { ...ALL, ...filter }, groupBy: ["phase", "flavor"] });
      const rows = await rowsOfSent();
      assert.ok(rows <= ROWS_MAX + 2 * WAITING, `${rows} rows`);
    });
  }

  test("a count of jobs that have ended reads as many as it counts", async () => {
    sent.length = 0;
    await store.reads.countJobs({ filter: { ...ALL, phases: ["SUCCEEDED"] }, groupBy: ["namespace"] });
    const rows = await rowsOfSent();
    assert.ok(rows <= ROWS_MAX + 2 * ENDED_MAX, `${rows} rows`);
  });

  test("a page of the jobs that hold the most reads those that are admitted, and no others", async () => {
    const rows = await rowsOf({ phases: ["ADMITTED", "STARTING", "RUNNING", "RESTARTING"] }, "held desc");
    assert.ok(rows <= ROWS_MAX, `${rows} rows`);
  });

  test("a list has the first places of a queue, and one job has its place however many are before it", async () => {
    const filter: JobFilter = { ...ALL, phases: ["WAITING"] };
    const list = async (order: JobOrder) => {
      const page = await store.reads.listJobs({ filter, order, pageSize: 3, after: null });
      assert.ok(page !== "badCursor");
      return page.jobs;
    };
    const places = (await list("create_time")).map(({ position }) => position);
    assert.deepEqual(places, [1, 2, 3]);
    const [youngest] = await list("create_time desc");
    assert.ok(youngest);
    assert.equal(youngest.position, null);
    assert.equal((await store.reads.getJob({ uid: youngest.job.uid }))?.position, WAITING + 1);
  });
});

/** A database that notes each statement with its parameters. */
function noting(db: Db, sent: { text: string; params: readonly unknown[] }[]): Db {
  const note = <E extends Executor>(executor: E): E => ({
    ...executor,
    query: (text: string, params: readonly unknown[] = []) => {
      sent.push({ text, params });
      return executor.query(text, params);
    },
  });
  return { ...note(db), tx: (fn) => db.tx((tx) => fn(note(tx))) };
}
