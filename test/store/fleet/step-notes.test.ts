import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { takeBuckets } from "../../../src/adapters/store/fleet/buckets.ts";
import { declareDead, joinMembers, leaveMembers } from "../../../src/adapters/store/fleet/members.ts";
import {
  endAlone,
  type NewStepNote,
  noteAlone,
  stepNotesIn,
  steppedJobs,
  withdrawStepNote,
  writeStepNote,
} from "../../../src/adapters/store/fleet/step-notes.ts";
import { bucketOf } from "../../../src/core/job/bucket.ts";
import { setAside } from "../../../src/core/reconcile/hold-gang.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";
import { NOW, newJob, sentOf } from "../jobs.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const ID = "00000000-0000-4000-8000-00000000000";

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

  const join = (name: string) => joinMembers(db, { name, takesBuckets: true, leaseMs: 1_000 });
  const die = (name: string) => declareDead(db, { name, counter: 0 });
  /** Joins, and takes the bucket. Returns whether its jobs are stepped alone. */
  const take = async (name: string, nowMs: number) => {
    await join(name);
    const [lease] = await takeBuckets(db, name, [7], nowMs);
    return lease?.alone ?? false;
  };

  test("a bucket whose holder dies soon after the one before it is stepped alone, until that is over", async () => {
    assert.equal(await take("a/1", NOW), false);
    await die("a/1");
    assert.equal(await take("b/1", NOW + 60 * MINUTE_MS), false, "one worker has died");
    await die("b/1");
    assert.equal(await take("c/1", NOW + 69 * MINUTE_MS), true, "the one that took it died too");
    await die("c/1");
    assert.equal(await take("d/1", NOW + 300 * MINUTE_MS), true, "its jobs had no step alone yet");
    const { mine } = await store.worker.bucketsOf("d/1");
    assert.deepEqual(mine, [{ bucket: 7, epoch: 4, alone: true }]);
    await endAlone(db, "d/1", [7]);
    assert.deepEqual((await store.worker.bucketsOf("d/1")).mine, [{ bucket: 7, epoch: 4 }]);
  });

  test("a bucket is not stepped alone if its second holder dies late, or if the holders leave in order", async () => {
    await take("a/1", NOW);
    await die("a/1");
    await take("b/1", NOW);
    await die("b/1");
    assert.equal(await take("c/1", NOW + 12 * MINUTE_MS), false);
    for (const name of ["c/1", "d/1", "e/1"]) {
      await leaveMembers(db, name);
      assert.equal(await take(`${name}+`, NOW + 12 * MINUTE_MS), false);
      await leaveMembers(db, `${name}+`);
    }
  });

  /** Joins, and takes the bucket as a worker of the version before does, which leaves no notes either. */
  const takeAsBefore = async (name: string) => {
    await join(name);
    await db.query("update bucket_leases set worker = $1, epoch = epoch + 1 where bucket = 7", [name]);
  };

  test("a worker of the version before may hold a bucket in between, and its ends blame no job", async () => {
    await take("new/1", NOW);
    await die("new/1");
    await takeAsBefore("old/1");
    await die("old/1");
    assert.equal(await take("new/2", NOW + MINUTE_MS), false, "nobody noted when the old one took it");
    await die("new/2");
    assert.equal(await take("new/3", NOW + 2 * MINUTE_MS), true, "its own end and that of the old one count");
    await die("new/3");
    await takeAsBefore("old/2");
    const { mine } = await store.worker.bucketsOf("old/2");
    assert.deepEqual(mine, [{ bucket: 7, epoch: 5, alone: true }], "it steps all jobs together, and notes none");
    await die("old/2");
    assert.deepEqual(await stepNotesIn(db, [7], NOW + 2 * MINUTE_MS), []);
    assert.equal(await take("new/4", NOW + 3 * MINUTE_MS), true, "the next new one goes on with one job at a time");
  });

  test("the ends of workers that left no note set no job aside, however many they are", async () => {
    const { uid } = await create("one");
    const bucket = bucketOf(uid);
    await db.query("update bucket_leases set worker = '', alone = false, died_ms = null where bucket = $1", [bucket]);
    for (let end = 1; end <= 5; end += 1) {
      await join(`old/${end}`);
      await db.query("update bucket_leases set worker = $1, epoch = epoch + 1 where bucket = $2", [
        `old/${end}`,
        bucket,
      ]);
      await die(`old/${end}`);
    }
    await join("new/1");
    await takeBuckets(db, "new/1", [bucket], NOW);
    const loaded = (await store.worker.loadBareJob(uid))?.job ?? assert.fail("the job exists");
    assert.equal(setAside(loaded, await stepNotesIn(db, [bucket], NOW), NOW), null);
    // One note of a new worker does not blame the job either: two of the ends have to be noted.
    await join("host/1/a/2");
    await noteAlone(db, { worker: "host/1/a/2", jobUid: uid, nowMs: NOW });
    await writeStepNote(db, note(uid));
    await die("host/1/a/2");
    assert.equal(setAside(loaded, await stepNotesIn(db, [bucket], NOW), NOW), null);
  });

  const create = async (name: string) => {
    const job = newJob({ name });
    assert.equal((await store.intake.createJob({ job, sent: sentOf(job), requestId: "" })).kind, "created");
    return job;
  };
  const note = (jobUid: string, change: Partial<NewStepNote> = {}): NewStepNote => {
    return { id: `${ID}1`, jobUid, worker: "host/1/a", atMs: NOW, what: "filled", plugin: null, ...change };
  };

  test("a note says whether its job was alone under way, and whether its worker has ended", async () => {
    const { uid: jobUid } = await create("one");
    const buckets = [bucketOf(jobUid)];
    const read = async () => (await stepNotesIn(db, buckets, NOW)).map(({ alone, ended }) => ({ alone, ended }));
    await join("host/1/a/2");
    await writeStepNote(db, note(jobUid));
    await noteAlone(db, { worker: "host/1/a/2", jobUid, nowMs: NOW });
    await writeStepNote(db, note(jobUid, { id: `${ID}2` }));
    assert.deepEqual(await read(), [
      { alone: false, ended: false },
      { alone: true, ended: false },
    ]);
    await die("host/1/a/2");
    assert.deepEqual(
      (await read()).map(({ ended }) => ended),
      [true, true],
    );
    await withdrawStepNote(db, `${ID}2`);
    assert.equal((await read()).length, 1);
    assert.deepEqual(await stepNotesIn(db, [(bucketOf(jobUid) + 1) % 1024], NOW), []);
    await writeStepNote(db, note(jobUid, { id: `${ID}3`, atMs: NOW + DAY_MS + 1 }));
    const left = await db.query<{ id: string }>("select id from step_notes");
    assert.deepEqual(left, [{ id: `${ID}3` }], "older notes are deleted");
  });

  test("the jobs to step are those that have not ended or are due, in pages", async () => {
    const jobs = await Promise.all(["one", "two", "three"].map(create));
    const uids = jobs.map(({ uid }) => uid).sort();
    const buckets = uids.map(bucketOf);
    const first = await steppedJobs(db, buckets, { after: null, limit: 2, nowMs: NOW });
    assert.deepEqual(first, uids.slice(0, 2));
    assert.deepEqual(await steppedJobs(db, buckets, { after: first[1] ?? "", limit: 2, nowMs: NOW }), uids.slice(2));
  });

  test("a job that is set aside is read for steps without its templates, until it is resumed", async () => {
    const { uid, namespace, name } = await create("one");
    const leases = await store.worker.takeBuckets("w1");
    const loaded = (await store.worker.loadJob(uid)) ?? assert.fail("the job exists");
    const hasTemplates = async () => {
      const job = (await store.worker.loadJob(uid))?.job ?? assert.fail("the job exists");
      return Object.values(job.spec.replicaSpecs).some(({ template }) => Object.keys(template).length > 0);
    };
    assert.equal(await hasTemplates(), true);
    const lease = leases.find(({ bucket }) => bucket === loaded.bucket) ?? assert.fail("the worker holds it");
    const bare = (await store.worker.loadBareJob(uid))?.job ?? assert.fail("the job exists");
    const made = { jobUid: uid, atMs: NOW - 1, what: "blocked", plugin: null, alone: false, ended: false } as const;
    const notes = ["a", "b"].map((worker) => ({ ...made, worker }));
    const decision = setAside(bare, notes, NOW) ?? assert.fail("it is set aside");
    assert.equal(await store.worker.record(bare, decision, lease, NOW), "recorded");
    assert.equal(await hasTemplates(), false);
    const { job: kept } = (await store.reads.getJob({ uid })) ?? assert.fail("the job exists");
    assert.deepEqual(kept.spec, loaded.job.spec, "the record keeps its templates");
    const resume = (job: typeof kept) => {
      const { setAside: _gone, ...status } = job.status;
      const event = { type: "Normal", reason: "Updated", message: "resumed" } as const;
      return { kind: "changed", job: { ...job, status, version: job.version + 1 }, event } as const;
    };
    assert.equal((await store.intake.changeJob({ namespace, name }, resume, NOW)).kind, "changed");
    assert.equal(await hasTemplates(), true);
  });
});
