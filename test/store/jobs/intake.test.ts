import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { createStore } from "../../../src/adapters/store/store.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { freshStore, type TestStore } from "../db.ts";
import { NOW, newJob, nextUid, sentOf } from "../jobs.ts";
import { pruneAll } from "../prune.ts";

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

  /** A create as a client that retries sends it: every attempt has a uid of its own. */
  function request(name: string, requestId: string, priority = 0) {
    const job = newJob({ name, priority, uid: nextUid() });
    return { job, sent: sentOf(job), requestId };
  }

  const PAGE = { pageSize: 10, after: null };

  test("the same request id and payload give the same job, and one job", async () => {
    const first = request("train", "r1");
    assert.equal((await store.intake.createJob(first)).kind, "created");
    const replay = await store.intake.createJob(request("train", "r1"));
    assert.deepEqual(replay, { kind: "replayed", job: first.job });
  });

  test("a payload is the same whatever the order of its members", async () => {
    const first = request("train", "r1");
    await store.intake.createJob(first);
    const sent = Object.fromEntries(Object.entries(first.sent).reverse()) as typeof first.sent;
    assert.equal((await store.intake.createJob({ ...request("train", "r1"), sent })).kind, "replayed");
  });

  test("a request id with another payload answers with the earlier payload", async () => {
    const first = request("train", "r1");
    await store.intake.createJob(first);
    assert.deepEqual(await store.intake.createJob(request("other", "r1")), {
      kind: "requestIdReused",
      sent: first.sent,
    });
    assert.equal(await store.reads.getJob({ namespace: "team", name: "other" }), null);
  });

  test("without a request id, a name is `unchanged` with the same spec and taken with another", async () => {
    const first = request("train", "");
    await store.intake.createJob(first);
    assert.deepEqual(await store.intake.createJob(request("train", "")), { kind: "unchanged", job: first.job });
    assert.deepEqual(await store.intake.createJob(request("train", "", 7)), { kind: "nameTaken", sent: first.sent });
  });

  test("a request id whose name was taken is not used up", async () => {
    await store.intake.createJob(request("train", ""));
    assert.equal((await store.intake.createJob(request("train", "r1", 7))).kind, "nameTaken");
    assert.equal((await store.intake.createJob(request("other", "r1", 7))).kind, "created");
  });

  test("a request id that was answered `unchanged` stands for that job from then on", async () => {
    const first = request("train", "");
    await store.intake.createJob(first);
    assert.equal((await store.intake.createJob(request("train", "r1"))).kind, "unchanged");
    assert.deepEqual(await store.intake.createJob(request("train", "r1")), { kind: "replayed", job: first.job });
  });

  test("a generated name that is taken never answers with the job that has it", async () => {
    const generated = (requestId: string) => {
      const made = request("train-x7k2p", requestId);
      return { ...made, sent: { ...made.sent, name: "", generateName: "train-" } };
    };
    await store.intake.createJob(generated("r1"));
    assert.equal((await store.intake.createJob(generated(""))).kind, "nameTaken");
    assert.equal((await store.intake.createJob(generated("r1"))).kind, "replayed");
  });

  test("the name of a job that is being deleted is neither free nor `unchanged`", async () => {
    await store.intake.createJob(request("train", ""));
    assert.equal((await store.intake.requestDelete({ namespace: "team", name: "train" }, NOW)).kind, "deleting");
    assert.deepEqual(await store.intake.createJob(request("train", "")), { kind: "beingDeleted" });
  });

  test("many creates of one name and one request id at once make one job", async () => {
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => store.intake.createJob(request("train", "r1"))));
    assert.deepEqual(outcomes.map(({ kind }) => kind).sort(), ["created", ...Array(7).fill("replayed")]);
    const listed = await store.reads.listEvents({ namespace: "team", name: "train", ...PAGE });
    assert.ok(typeof listed === "object");
    assert.deepEqual(
      listed.events.map(({ reason }) => reason),
      ["PyTorchJobCreated"],
    );
  });

  test("an open installation makes a namespace on first use", async () => {
    assert.equal((await store.intake.facts({ namespace: "team" })).namespace, "open");
    await store.intake.createJob(request("train", ""));
    const made = { project: "default", defaultQueue: "research", podPolicy: null };
    assert.deepEqual((await store.intake.facts({ namespace: "team" })).namespace, made);
  });

  test("a refused create leaves no namespace behind", async () => {
    await store.intake.createJob(request("train", "r1"));
    const elsewhere = { ...request("train", "r1"), sent: { ...request("train", "r1").sent, namespace: "x" } };
    await store.intake.createJob(elsewhere);
    assert.deepEqual(
      (await store.admin.listNamespaces()).map(({ name }) => name),
      ["team"],
    );
  });

  test("a closed installation makes no namespace, and a job without one is to be checked again", async () => {
    const clock = { nowMs: () => NOW };
    const closed = createStore(db, {
      clock,
      kinds: OWN_KINDS,
      openNamespaces: false,
      defaultQueue: "research",
      onAppended: () => {},
    });
    assert.equal((await closed.intake.facts({ namespace: "team" })).namespace, null);
    for (const requestId of ["", "r1"]) {
      assert.deepEqual(await closed.intake.createJob(request("train", requestId)), { kind: "outdated" });
      assert.deepEqual(await closed.intake.createJobs([request("train", requestId)]), [null]);
      assert.deepEqual(await closed.intake.createJobs([{ ...request("train", requestId), dryRun: true }]), [null]);
    }
    assert.deepEqual(await closed.admin.listNamespaces(), []);
    assert.deepEqual(await db.query("select 1 from request_ids"), []);
  });

  test("facts say whether a queue exists", async () => {
    for (const queue of ["research", "nope", "no\0pe"]) {
      const facts = await store.intake.facts({ namespace: "team", queue });
      assert.equal(await facts.queueExists("research"), true);
      assert.equal(await facts.queueExists("nope"), false);
    }
  });

  test("a cancel is recorded once, wakes the job, and keeps the record", async () => {
    const { job } = await submitted("train");
    const outcome = await store.intake.requestCancel(job, "enough", NOW + 9);
    assert.ok(outcome.kind === "cancelled");
    assert.deepEqual(outcome.job, { ...job, cancel: { reason: "enough", atMs: NOW + 9 }, version: 2 });
    assert.equal((await store.intake.requestCancel(job, "again", NOW + 10)).kind, "already");
    assert.deepEqual((await store.worker.loadJob(job.uid))?.job, outcome.job);
  });

  test("a job that has ended can be deleted but not cancelled; an unknown job is not found", async () => {
    const { job } = await submitted("train");
    const leases = await store.worker.takeBuckets("w");
    const bucket = (await store.worker.loadJob(job.uid))?.bucket;
    const lease = leases.find((held) => held.bucket === bucket);
    assert.ok(lease);
    const status = { ...job.status, phase: "SUCCEEDED" as const, completionTimeMs: NOW };
    const record = { status, admissions: [], events: [], deleteTimeMs: null };
    await store.worker.record(job, { record, forget: false, actions: [], recheckAtMs: null }, lease, NOW);
    assert.equal((await store.intake.requestCancel(job, "", NOW)).kind, "terminal");
    assert.equal((await store.intake.requestDelete(job, NOW)).kind, "deleting");
    assert.equal((await store.intake.requestDelete(job, NOW)).kind, "already");
    assert.equal((await store.intake.requestCancel({ namespace: "team", name: "no" }, "", NOW)).kind, "notFound");
    assert.equal((await store.intake.requestDelete({ namespace: "no", name: "train" }, NOW)).kind, "notFound");
  });

  async function submitted(name: string) {
    const made = request(name, "");
    await store.intake.createJob(made);
    return made;
  }

  test("a reason may hold any character", async () => {
    const { job } = await submitted("train");
    const outcome = await store.intake.requestCancel(job, "nul \u0000 and \ud83d\ude80", NOW);
    assert.ok(outcome.kind === "cancelled");
    assert.deepEqual((await store.worker.loadJob(job.uid))?.job.cancel, outcome.job.cancel);
  });

  test("request ids are kept until they are old and their job is gone", async () => {
    const { job } = await submitted("kept");
    await store.intake.createJob({ job: newJob({ name: "kept" }), sent: sentOf(job), requestId: "r1" });
    await pruneAll(store, NOW + 1);
    assert.equal((await store.intake.createJob(request("kept", "r1"))).kind, "replayed");
  });

  test("a dry run answers as the create would, and leaves neither a job nor a request id nor an event", async () => {
    const dry = (name: string, requestId: string, priority = 0) => ({
      ...request(name, requestId, priority),
      dryRun: true,
    });
    assert.equal((await store.intake.createJob(dry("train", "r1"))).kind, "created");
    assert.equal(await store.reads.getJob({ namespace: "team", name: "train" }), null);
    const first = request("train", "r1", 7);
    assert.deepEqual(await store.intake.createJob(first), { kind: "created", job: first.job });
    const events = await store.reads.listEvents({ namespace: "team", name: "train", ...PAGE });
    assert.equal(typeof events === "object" && events.events.length, 1);
    assert.equal((await store.intake.createJob(dry("train", "r1", 7))).kind, "replayed");
    assert.equal((await store.intake.createJob(dry("train", "r2", 7))).kind, "unchanged");
    assert.equal((await store.intake.createJob(dry("train", "r2"))).kind, "nameTaken");
    assert.equal((await store.intake.createJob(request("other", "r2"))).kind, "created");
  });
});
