/** Queues that limit how many of their jobs wait. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { changeJob } from "../../../src/core/kinds/change-job.ts";
import { onEachDatabase, onPostgres } from "../../support/databases.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { freshStore, type TestStore } from "../db.ts";
import { awaitBlocked, inOrder } from "../in-order.ts";
import { NOW, newJob, sentOf } from "../jobs.ts";

/** What tests do with queue `limited`, and with queue `research`, which has no limit. */
function actions(store: () => TestStore) {
  const request = (of: Parameters<typeof newJob>[0] & { readonly dryRun?: boolean } = {}) => {
    const { dryRun = false, ...rest } = of;
    const job = newJob({ queue: "limited", ...rest });
    return { job, sent: sentOf(job), requestId: `for-${job.uid}`, dryRun };
  };
  return {
    request,
    create: (of?: Parameters<typeof request>[0]) => store().intake.createJob(request(of)),
    limit: async (maxWaitingJobs: number | null) => {
      const queue = { name: "limited", strategy: "STRICT_FIFO", quotas: [], maxWaitingJobs, version: 0 } as const;
      const changed = await store().admin.updateQueue(queue);
      assert.ok(changed.kind === "done");
      return changed.record;
    },
  };
}

function noRoom(used: number, max: number) {
  return { kind: "noRoom", scope: { kind: "queue", name: "limited" }, limit: "maxWaitingJobs", used, asked: 1, max };
}

function kindsOf(outcomes: readonly ({ readonly kind: string } | null)[]) {
  return outcomes.map((outcome) => outcome?.kind ?? null);
}

function count<T>(all: readonly T[], wanted: T): number {
  return all.filter((one) => one === wanted).length;
}

async function freshQueues(db: Db): Promise<TestStore> {
  const { store } = await freshStore(db);
  await store.admin.ensureQueue({ name: "limited", strategy: "STRICT_FIFO", quotas: [] });
  return store;
}

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  const { request, create, limit } = actions(() => store);
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = await freshQueues(db);
  });

  test("a create beyond the limit is refused, also as a dry run, and other queues take jobs", async () => {
    assert.equal((await limit(2)).maxWaitingJobs, 2);
    const full = noRoom(2, 2);
    assert.equal((await create({ dryRun: true })).kind, "created");
    assert.deepEqual([(await create()).kind, (await create()).kind], ["created", "created"]);
    assert.deepEqual([await create(), await create({ dryRun: true })], [full, full]);
    assert.equal((await create({ queue: "research" })).kind, "created");
    assert.equal((await limit(null)).maxWaitingJobs, null);
    assert.equal((await create()).kind, "created");
  });

  test("of concurrent creates, as many succeed as there is room for", async () => {
    await limit(3);
    const others = Array.from({ length: 5 }, () => create({ queue: "research" }));
    const outcomes = kindsOf(await Promise.all(Array.from({ length: 24 }, () => create())));
    assert.deepEqual([count(outcomes, "created"), count(outcomes, "noRoom")], [3, 21]);
    assert.deepEqual(new Set(kindsOf(await Promise.all(others))), new Set(["created"]));
  });

  test("of concurrent batches, as many jobs are created as there is room for, and all of other queues", async () => {
    await limit(7);
    const batches = Array.from({ length: 8 }, () =>
      ["limited", "research", "limited", "limited"].map((queue) => request({ queue })),
    );
    const outcomes = await Promise.all(batches.map((batch) => store.intake.createJobs(batch)));
    const inLimited = kindsOf(outcomes.flatMap((batch) => batch.filter((_, at) => at !== 1)));
    assert.deepEqual([count(inLimited, "created"), count(inLimited, null)], [7, 17]);
    assert.equal(count(kindsOf(outcomes.map((batch) => batch[1] ?? null)), "created"), 8);
  });

  test("in a batch the first jobs get the room, in the order given", async () => {
    await limit(2);
    const named = (name: string, queue = "limited") => request({ name, queue });
    const batch = [named("d"), named("c"), named("b"), named("z", "research"), named("a")];
    assert.deepEqual(kindsOf(await store.intake.createJobs(batch)), ["created", "created", null, "created", null]);
    const left = [batch[2], batch[4]].map((request) => request?.requestId);
    const claims = await db.query("select 1 from request_ids where request_id = any($1::text[])", [left]);
    assert.equal(claims.length, 0, "a job that is left out keeps no request id");
  });

  test("in a batch no job takes room before an earlier one that is tried alone", async () => {
    const before = request({ name: "taken", queue: "research" });
    await store.intake.createJob(before);
    await limit(2);
    const replayed = { ...request({ queue: "limited" }), requestId: before.requestId };
    const batch = [request(), replayed, request(), request({ queue: "research" })];
    assert.deepEqual(kindsOf(await store.intake.createJobs(batch)), ["created", null, null, "created"]);
    assert.deepEqual(kindsOf(await store.intake.createJobs([request({ dryRun: true })])), [null]);
  });

  test("a repeated create returns its job although the queue is full", async () => {
    await limit(1);
    const first = request({ name: "train" });
    await store.intake.createJob(first);
    assert.equal((await store.intake.createJob(first)).kind, "replayed");
    const again = { ...request({ name: "train" }), sent: first.sent, requestId: "another" };
    assert.equal((await store.intake.createJob(again)).kind, "unchanged");
    assert.equal((await store.intake.createJob(again)).kind, "replayed");
    assert.equal((await create({ name: "train", priority: 5 })).kind, "nameTaken");
  });

  test("jobs that wait or are suspended count, and those that are admitted or have ended do not", async () => {
    for (const phase of ["WAITING", "SUSPENDED", "RUNNING", "RESTARTING", "FAILED"]) {
      const { job, ...rest } = request();
      await store.intake.createJob({ job, ...rest });
      const ended = phase === "FAILED" ? NOW : null;
      await db.query("update jobs set phase = $2, completion_ms = $3 where uid = $1", [job.uid, phase, ended]);
    }
    await limit(3);
    assert.equal((await create()).kind, "created");
    assert.deepEqual(await create(), noRoom(3, 3));
  });

  test("a lower limit ends no job and keeps none from waiting again", async () => {
    const first = request();
    await store.intake.createJob(first);
    await create();
    await limit(1);
    assert.deepEqual(await create(), noRoom(2, 1));
    const kind = OWN_KINDS.kindOf(first.job.spec.kind)!;
    const suspend = (on: boolean) =>
      store.intake.changeJob(first.job, (job) => changeJob(job, kind, { version: null, suspend: on }, NOW), NOW);
    assert.deepEqual([(await suspend(true)).kind, (await suspend(false)).kind], ["changed", "changed"]);
    assert.equal((await store.admin.getQueue("limited"))?.waiting, 2);
  });
});

onPostgres((openDb) => {
  let db: Db;
  let store: TestStore;
  const { request, create, limit } = actions(() => store);
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = await freshQueues(db);
  });

  const row = { table: "queues", name: "limited" } as const;

  test("a create that has not seen a new limit is checked again", async () => {
    await create();
    const [, created] = await inOrder(db, row, { first: () => limit(1), second: () => create() });
    assert.deepEqual(created, { kind: "outdated" });
    await limit(null);
    const [, batch] = await inOrder(db, row, {
      first: () => limit(1),
      second: () => store.intake.createJobs([request(), request({ queue: "research" })]),
    });
    assert.deepEqual(kindsOf(batch), [null, "created"]);
  });

  test("a new limit waits for the creates that have not seen it", async () => {
    const ended: string[] = [];
    const limiting = await db.tx(async (tx) => {
      await tx.query("select 1 from queues where name = 'limited' for key share");
      const change = limit(1).then(() => ended.push("limit"));
      await awaitBlocked(db, 1, change);
      ended.push("create");
      return [change];
    });
    await Promise.all(limiting);
    assert.deepEqual(ended, ["create", "limit"]);
  });

  test("creates in other queues do not wait for one in a queue with a limit", async () => {
    await limit(5);
    await db.tx(async (tx) => {
      await tx.query("select 1 from queues where name = 'limited' for no key update");
      assert.equal((await create({ queue: "research" })).kind, "created");
    });
  });
});
