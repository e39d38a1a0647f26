import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import fc from "fast-check";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Job } from "../../../src/core/job/job.ts";
import { type JobFilter, matchesFilter } from "../../../src/core/job/request/filter.ts";
import type { JobOrder } from "../../../src/core/job/request/list.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";
import { anyAdmissions, anyStatus, NO_STATUS, NOW, newJob, nextUid, sentOf } from "../jobs.ts";
import { pruneAll } from "../prune.ts";

const ALL: JobFilter = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: null, labels: {} };

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store;
    await store.admin.ensureQueue({ name: "batch", strategy: "BEST_EFFORT_FIFO", quotas: [] });
  });

  async function submit(changes: Parameters<typeof newJob>[0] = {}): Promise<Job> {
    const job = newJob(changes);
    assert.equal((await store.intake.createJob({ job, sent: sentOf(job), requestId: "" })).kind, "created");
    return job;
  }

  async function list(filter: Partial<JobFilter>, order: JobOrder = "create_time", pageSize = 100) {
    const pages: string[][] = [];
    let after: string | null = null;
    do {
      const page = await store.reads.listJobs({ filter: { ...ALL, ...filter }, order, pageSize, after });
      assert.ok(page !== "badCursor");
      pages.push(page.jobs.map(({ job }) => job.name));
      after = page.next;
    } while (after !== null);
    return pages;
  }

  test("jobs with a reusable result share namespace, kind and cache key; succeeded ones come first", async () => {
    const keyed = async (name: string, cacheKey: string, more: Partial<Job> = {}) => {
      const made = newJob({ uid: nextUid(), name, ...more });
      const job = { ...made, spec: { ...made.spec, runPolicy: { ...made.spec.runPolicy, cacheKey } } };
      await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
      return job;
    };
    const asks = await keyed("asks", "k");
    await keyed("younger", "k", { createTimeMs: NOW + 1 });
    const done = { ...asks.status, phase: "SUCCEEDED" as const, completionTimeMs: NOW };
    await keyed("done", "k", { createTimeMs: NOW + 2, status: done });
    await keyed("failed", "k", { status: { ...done, phase: "FAILED" } });
    await keyed("deleted", "k", { status: done, deleteTimeMs: NOW });
    await keyed("other", "another key");
    await keyed("none", "");
    const found = await store.worker.findAlike(asks);
    assert.deepEqual(
      found.map(({ name }) => name),
      ["done", "younger"],
    );
  });

  test("a job is read exactly as it was recorded, whatever its status and admissions hold", async () => {
    const leases = await store.worker.takeBuckets("w");
    const arbitrary = fc.record({
      status: anyStatus,
      admissions: anyAdmissions,
      deleteTimeMs: fc.option(fc.nat()),
      annotations: fc.dictionary(fc.string({ unit: "binary", maxLength: 6 }), fc.string({ unit: "binary" }), {
        maxKeys: 3,
      }),
      kindSpec: fc.dictionary(fc.string({ unit: "binary", maxLength: 6 }), fc.jsonValue(), { maxKeys: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(arbitrary, async ({ status, admissions, deleteTimeMs, annotations, kindSpec }) => {
        // What JSON can hold: a number is never -0, and a member of that name is one like any other.
        const plain = JSON.parse(JSON.stringify({ annotations, kindSpec, status, admissions }));
        const made = newJob({ uid: nextUid(), annotations: plain.annotations });
        const job = { ...made, spec: { ...made.spec, kindSpec: plain.kindSpec } };
        await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
        const loaded = await store.worker.loadJob(job.uid);
        assert.deepEqual(loaded?.job, job);
        const lease = leases.find(({ bucket }) => bucket === loaded?.bucket);
        assert.ok(lease);
        const record = { status: plain.status, admissions: plain.admissions, events: [], deleteTimeMs };
        const decision = { record, forget: false, actions: [], recheckAtMs: null };
        assert.equal(await store.worker.record(job, decision, lease, NOW), "recorded");
        const expected = { ...job, status: plain.status, admissions: plain.admissions, deleteTimeMs, version: 2 };
        assert.deepEqual((await store.worker.loadJob(job.uid))?.job, expected);
      }),
      { numRuns: 60 },
    );
  });

  const FILTERS: Record<string, Partial<JobFilter>> = {
    "nothing asked": {},
    "one namespace": { namespace: "team" },
    "another namespace": { namespace: "x" },
    "namespaces that are shown": { namespaces: ["team", "x"] },
    "no namespace that is shown": { namespaces: [] },
    "some names": { names: ["a", "c"] },
    "a kind": { kinds: ["PyTorchJob"] },
    "another kind": { kinds: ["TFJob"] },
    phases: { phases: ["WAITING", "RUNNING"] },
    "a phase that none has": { phases: ["RUNNING"] },
    "a queue": { queue: "batch" },
    "a cluster": { cluster: "east" },
    "a label": { labels: { team: "vision" } },
    "two labels": { labels: { team: "vision", tier: "1" } },
    "labels and names": { labels: { team: "vision" }, names: ["b"] },
  };
  for (const [name, filter] of Object.entries(FILTERS)) {
    test(`a list filters as core does: ${name}`, async () => {
      const jobs = [
        await submit({ name: "a", labels: { team: "vision", tier: "1" }, createTimeMs: NOW }),
        await submit({ name: "b", labels: { team: "vision" }, queue: "batch", createTimeMs: NOW + 1 }),
        await submit({ name: "c", labels: { team: "speech" }, createTimeMs: NOW + 2 }),
      ];
      const expected = jobs.filter((job) => matchesFilter({ ...ALL, ...filter }, job)).map((job) => job.name);
      assert.deepEqual((await list(filter)).flat(), expected);
    });
  }

  const ORDERS: Record<JobOrder, readonly string[]> = {
    create_time: ["a", "b", "c", "d"],
    "create_time desc": ["d", "c", "b", "a"],
    name: ["a", "b", "c", "d"],
    "priority desc": ["c", "b", "d", "a"],
    // None holds anything: then the order of creation counts.
    "held desc": ["a", "b", "c", "d"],
    // None has ended.
    "complete_time desc": [],
    wait_since: ["d", "a", "b", "c"],
  };
  for (const [order, expected] of Object.entries(ORDERS)) {
    test(`pages follow each other in order of ${order}`, async () => {
      await submit({ name: "a", priority: -5, createTimeMs: NOW });
      await submit({ name: "b", priority: 1, createTimeMs: NOW + 1 });
      await submit({ name: "c", priority: 2, createTimeMs: NOW + 2 });
      // Its last admission ended before the others were created.
      const condition = { type: "Admitted" as const, status: "False" as const, reason: "R", message: "" };
      const admitted = { ...condition, lastUpdateMs: NOW - 1, lastTransitionMs: NOW - 1 };
      const status = { ...NO_STATUS, conditions: [...NO_STATUS.conditions, admitted] };
      await submit({ name: "d", priority: 1, createTimeMs: NOW + 2, status });
      for (const pageSize of [1, 2, 3, 4]) {
        const pages = await list({}, order as JobOrder, pageSize);
        assert.deepEqual(pages.flat(), expected);
        assert.equal(pages.length, Math.max(1, Math.ceil(expected.length / pageSize)));
      }
    });
  }

  test("pages of ended jobs begin with the one that ended last", async () => {
    const ended = (name: string, completionTimeMs: number) =>
      submit({ name, status: { ...NO_STATUS, phase: "FAILED", completionTimeMs } });
    await ended("first", NOW);
    await ended("last", NOW + 5);
    await ended("second", NOW + 1);
    await submit({ name: "waits" });
    for (const pageSize of [1, 2, 3]) {
      const pages = await list({ phases: ["FAILED"] }, "complete_time desc", pageSize);
      assert.deepEqual(pages.flat(), ["last", "second", "first"]);
      assert.deepEqual((await list({ endedSinceMs: NOW + 1 }, "complete_time desc", pageSize)).flat(), [
        "last",
        "second",
      ]);
    }
  });

  test("a cursor of another order, or any other text, is a bad cursor", async () => {
    await submit({ name: "a" });
    await submit({ name: "b" });
    const query = { filter: ALL, order: "name" as JobOrder, pageSize: 1 };
    const page = await store.reads.listJobs({ ...query, after: null });
    assert.ok(page !== "badCursor" && page.next !== null);
    const bad = [
      page.next,
      "",
      "%%%",
      "bnVsbA",
      Buffer.from(JSON.stringify(["create_time", NOW, "no uuid"])).toString("base64url"),
      Buffer.from(JSON.stringify(["create_time", 1.5, nextUid()])).toString("base64url"),
      Buffer.from(JSON.stringify(["create_time", "1", nextUid()])).toString("base64url"),
    ];
    for (const after of bad)
      assert.equal(await store.reads.listJobs({ ...query, order: "create_time", after }), "badCursor");
    const events = { namespace: "team", name: "a", pageSize: 1 };
    assert.equal(await store.reads.listEvents({ ...events, after: "x" }), "badCursor");
  });

  test("a list has the total beside the page", async () => {
    for (const name of ["a", "b", "c"]) await submit({ name });
    const page = await store.reads.listJobs({ filter: ALL, order: "name", pageSize: 2, after: null });
    assert.ok(page !== "badCursor");
    assert.equal(page.total, 3);
    assert.equal(page.jobs.length, 2);
  });

  test("positions count the waiting jobs of a queue by priority, then age", async () => {
    const old = await submit({ createTimeMs: NOW });
    const young = await submit({ createTimeMs: NOW + 1 });
    const urgent = await submit({ createTimeMs: NOW + 2, priority: 9 });
    const elsewhere = await submit({ createTimeMs: NOW + 3, queue: "batch" });
    const leaving = await submit({ createTimeMs: NOW - 1 });
    await store.intake.requestCancel(leaving, "", NOW);
    const place = async (job: Job) => (await store.reads.getJob({ uid: job.uid }))?.position;
    assert.deepEqual(await Promise.all([urgent, old, young, elsewhere, leaving].map(place)), [1, 2, 3, 1, null]);
    const page = await store.reads.listJobs({ filter: ALL, order: "priority desc", pageSize: 9, after: null });
    assert.ok(page !== "badCursor");
    const places = new Map(page.jobs.map(({ job, position }) => [job.uid, position]));
    assert.deepEqual(
      [urgent, old, young, elsewhere, leaving].map(({ uid }) => places.get(uid)),
      [1, 2, 3, 1, null],
    );
  });

  test("a job is found by its name and by its uid", async () => {
    const job = await submit({ name: "a" });
    assert.deepEqual((await store.reads.getJob({ namespace: "team", name: "a" }))?.job, job);
    assert.deepEqual((await store.reads.getJob({ uid: job.uid }))?.job, job);
    assert.equal(await store.reads.getJob({ namespace: "other", name: "a" }), null);
    assert.equal(await store.reads.getJob({ uid: nextUid() }), null);
    assert.equal(await store.reads.getJob({ uid: "not a uid" }), null);
  });

  test("events come oldest first in pages, with the worker's notes among them", async () => {
    const job = await submit({ name: "a" });
    const note = (message: string) => ({ type: "Warning" as const, reason: "FailedCreatePod", message });
    await store.worker.note(job, [note("one \u0000"), note("two")], NOW + 1);
    const query = { namespace: "team", name: "a", pageSize: 2 };
    const first = await store.reads.listEvents({ ...query, after: null });
    assert.ok(typeof first === "object");
    assert.deepEqual(
      first.events.map(({ message }) => message),
      ["PyTorchJob train is created.", "one \ufffd"],
    );
    const second = await store.reads.listEvents({ ...query, after: first.next });
    assert.ok(typeof second === "object");
    assert.deepEqual(second, {
      events: [{ ...note("two"), jobUid: job.uid, version: 1, atMs: NOW + 1 }],
      next: null,
    });
    assert.equal(await store.reads.listEvents({ ...query, name: "b", after: null }), "notFound");
  });

  test("old events are pruned", async () => {
    await submit({ name: "a" });
    await pruneAll(store, NOW + 1);
    const events = await store.reads.listEvents({ namespace: "team", name: "a", pageSize: 5, after: null });
    assert.deepEqual(events, { events: [], next: null });
  });
});
