import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, beforeEach, test } from "node:test";
import type { Job } from "../../../src/core/job/job.ts";
import type { WatchItem } from "../../../src/core/job/request/event-log.ts";
import type { JobFilter } from "../../../src/core/job/request/filter.ts";
import { type JobOrder, type JobView, PAGE_BYTES_MAX } from "../../../src/core/job/request/list.ts";
import { bareSpec } from "../../../src/core/job/spec.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { createWatch } from "../../../src/watch/watch.ts";
import { CountingDb } from "../../support/counting-db.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";
import { NOW, newJob, sentOf } from "../jobs.ts";

const ALL: JobFilter = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: null, labels: {} };
const MIB = 1024 * 1024;
const JOBS = 12;
/** What a page holds beside its specs: names, statuses and the names of columns. */
const BESIDE = 64 * 1024;

onEachDatabase((openDb) => {
  let db: CountingDb;
  let store: TestStore;
  before(async () => {
    db = new CountingDb(await openDb());
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store;
  });

  async function submit(name: string, bytes: number): Promise<Job> {
    const made = newJob({ name });
    const { Worker } = made.spec.replicaSpecs;
    assert.ok(Worker);
    const template = {
      spec: { containers: [{ name: "pytorch", args: ["\u0000 \ud800 \\u0000 secret-marker", "y".repeat(bytes)] }] },
    };
    const job = { ...made, spec: { ...made.spec, replicaSpecs: { Worker: { ...Worker, template } } } };
    assert.equal((await store.intake.createJob({ job, sent: sentOf(job), requestId: "" })).kind, "created");
    return job;
  }

  async function submitAll(): Promise<readonly Job[]> {
    const jobs: Job[] = [];
    for (let at = 0; at < JOBS; at += 1) jobs.push(await submit(`job-${String(at).padStart(2, "0")}`, MIB));
    db.reads = [];
    return jobs;
  }

  async function pages(view: JobView, order: JobOrder = "name", pageSize = 100): Promise<readonly (readonly Job[])[]> {
    const all: Job[][] = [];
    for (let next: string | null = null, first = true; first || next !== null; first = false) {
      const page = await store.reads.listJobs({ filter: ALL, order, pageSize, after: next, view });
      assert.ok(page !== "badCursor");
      assert.ok(page.jobs.length > 0);
      all.push(page.jobs.map(({ job }) => job));
      next = page.next;
    }
    return all;
  }

  for (const order of ["create_time", "create_time desc", "name", "priority desc"] as const) {
    test(`a page of a full list has at most its bytes, and no statement reads more, by ${order}`, async () => {
      const jobs = await submitAll();
      const read = await pages("FULL", order);
      assert.deepEqual(new Set(read.map((page) => page.length)), new Set([3]));
      const byUid = (all: readonly Job[]) => new Map(all.map((job) => [job.uid, job.spec]));
      assert.deepEqual(byUid(read.flat()), byUid(jobs));
      assert.ok(db.largest <= PAGE_BYTES_MAX + BESIDE, `${db.largest} bytes`);
    });
  }

  test("a page has at least one job, however large, and never more jobs than were asked for", async () => {
    await submit("a-small", 10);
    await submit("b-large", 5 * MIB);
    await submit("c-small", 10);
    await submit("d-small", 10);
    const names = (read: readonly (readonly Job[])[]) => read.map((page) => page.map(({ name }) => name));
    assert.deepEqual(names(await pages("FULL")), [["a-small"], ["b-large"], ["c-small", "d-small"]]);
    assert.deepEqual(names(await pages("FULL", "name", 1)), [["a-small"], ["b-large"], ["c-small"], ["d-small"]]);
    assert.deepEqual(names(await pages("BASIC", "name", 3)), [["a-small", "b-large", "c-small"], ["d-small"]]);
  });

  test("a basic list reads no template, also after a change of the job", async () => {
    const [first] = await submitAll();
    assert.ok(first);
    const changed = { ...first, spec: { ...first.spec, priority: 7 }, version: 2 };
    const event = { type: "Normal", reason: "Updated", message: "changed" } as const;
    await store.intake.changeJob(first, () => ({ kind: "changed", job: changed, event }), NOW);
    db.reads = [];
    const [page] = await pages("BASIC");
    assert.deepEqual(page?.[0]?.spec, bareSpec(changed.spec));
    assert.equal(page?.length, JOBS);
    assert.ok(!db.reads.some((text) => text.includes("secret-marker")));
    assert.ok(db.largest < BESIDE);
  });

  test("a job that the version before wrote is listed without its templates, and counts with its bytes", async () => {
    const jobs = await submitAll();
    await db.query("update jobs set outline = null, spec_bytes = null");
    assert.deepEqual(
      (await pages("BASIC")).flat().map(({ spec }) => spec),
      jobs.map(({ spec }) => bareSpec(spec)),
    );
    db.reads = [];
    await pages("FULL");
    assert.ok(db.largest <= PAGE_BYTES_MAX + BESIDE);
  });

  test("the migration makes an outline of every job, also where a template has what SQL cannot read", async () => {
    const jobs = await submitAll();
    await db.query("update jobs set outline = null, spec_bytes = null");
    const file = new URL("../../../migrations/0005_job-outlines.sql", import.meta.url);
    const [, ...statements] = readFileSync(file, "utf8").split(/;\n/);
    for (const statement of statements.slice(0, -2)) await db.query(statement);
    const rows = await db.query<{ outline: unknown; sized: boolean }>(
      "select outline, spec_bytes = octet_length(spec::text) as sized from jobs order by name",
    );
    assert.deepEqual(
      rows,
      jobs.map(({ spec }) => ({ outline: bareSpec(spec), sized: true })),
    );
  });

  test("full watches read their snapshot in pages of bytes, and a change once for all of them", async () => {
    const jobs = await submitAll();
    const loopFailed = ({ error }: { error: unknown }) => assert.ifError(error);
    const watch = createWatch({ clock: systemClock(), store: store.watch }, { loopFailed });
    const stop = new AbortController();
    const streams = Array.from({ length: 20 }, () =>
      watch.watch({ filter: ALL, cursor: "", full: true }, stop.signal)[Symbol.asyncIterator](),
    );
    const take = async (count: number): Promise<readonly (readonly WatchItem[])[]> =>
      Promise.all(
        streams.map(async (stream) => {
          const items: WatchItem[] = [];
          for (let at = 0; at < count; at += 1) items.push((await stream.next()).value as WatchItem);
          return items;
        }),
      );
    for (const items of await take(JOBS + 1)) {
      assert.deepEqual(
        items.flatMap((item) => ("job" in item ? [item.job.spec] : [])),
        jobs.map(({ spec }) => spec),
      );
    }
    assert.ok(db.largest <= PAGE_BYTES_MAX + BESIDE, `${db.largest} bytes`);

    db.reads = [];
    const first = jobs[0] as Job;
    const event = { type: "Normal", reason: "Updated", message: "changed" } as const;
    const changed = { ...first, labels: { team: "vision" }, version: 2 };
    await store.intake.changeJob(first, () => ({ kind: "changed", job: changed, event }), NOW);
    const before = db.reads.filter((text) => text.includes("secret-marker")).length;
    await watch.runOnce();
    const shown = (await take(1)).map(([item]) => (item !== undefined && "job" in item ? item.job : null));
    assert.equal(shown[0]?.labels["team"], "vision");
    assert.deepEqual(shown[0]?.spec, first.spec);
    assert.equal(new Set(shown).size, 1, "all streams have the same job, so that it is encoded once");
    assert.equal(db.reads.filter((text) => text.includes("secret-marker")).length - before, 1);
    stop.abort();
  });
});
