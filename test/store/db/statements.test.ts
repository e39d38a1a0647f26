/** How many statements the most frequent calls for jobs run: each costs its caller a part of a round trip. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { countedDb } from "../../tools/bench/counted-db.ts";
import { freshStore, type TestStore } from "../db.ts";
import { newJob, nextUid, sentOf } from "../jobs.ts";

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  let statements = 0;
  let transactions = 0;
  before(async () => {
    db = await openDb();
    const count = (kind: "statement" | "transaction") => {
      if (kind === "statement") statements += 1;
      else transactions += 1;
    };
    store = (await freshStore(countedDb(db, ({ kind }) => count(kind)))).store;
    await store.intake.createJob(request("first", ""));
  });
  after(() => db.close());

  function request(name: string, requestId: string) {
    const job = newJob({ name, uid: nextUid() });
    return { job, sent: sentOf(job), requestId };
  }

  /** The statements and transactions of a call. */
  async function countedIn(call: () => Promise<unknown>): Promise<readonly [statements: number, transactions: number]> {
    [statements, transactions] = [0, 0];
    await call();
    return [statements, transactions];
  }

  test("a submit reads its facts by one statement", async () => {
    const { namespace } = newJob();
    const read = async () => {
      const facts = await store.intake.facts({ namespace, queue: "other" });
      return [await facts.queueExists("other"), await facts.queueExists("research"), facts.clusters];
    };
    assert.deepEqual(await countedIn(read), [1, 0]);
  });

  test("a job is created by six statements, and by one more for its request id", async () => {
    assert.deepEqual(await countedIn(() => store.intake.createJob(request("plain", ""))), [6, 1]);
    assert.deepEqual(await countedIn(() => store.intake.createJob(request("once", "r1"))), [7, 1]);
  });

  test("200 jobs are created by no more statements than one", async () => {
    const jobs = Array.from({ length: 200 }, (_, at) => request(`of-many-${at}`, `many-${at}`));
    assert.deepEqual(await countedIn(() => store.intake.createJobs(jobs)), [7, 1]);
  });

  test("reads of one moment share statements, and each gets its own job", async () => {
    const jobs = Array.from({ length: 12 }, (_, at) => request(`read-${at}`, ""));
    await store.intake.createJobs(jobs);
    const names = [...jobs.map(({ job }) => job.name), "none", "read-0"];
    const byName = () => names.map((name) => store.reads.getJob({ namespace: "team", name }));
    const byUid = () =>
      [nextUid(), ...jobs.slice(0, 1).map(({ job }) => job.uid)].map((uid) => store.reads.getJob({ uid }));
    let found: readonly (string | undefined)[] = [];
    const read = async () => {
      found = (await Promise.all([...byName(), ...byUid()])).map((shown) => shown?.job.name);
    };
    assert.deepEqual(await countedIn(read), [2, 0]);
    assert.deepEqual(found, [...names.map((name) => (name === "none" ? undefined : name)), undefined, "read-0"]);
  });

  test("a job is read by one statement, with its place in its queue", async () => {
    assert.deepEqual(await countedIn(() => store.reads.getJob({ namespace: "team", name: "first" })), [1, 0]);
    assert.equal((await store.reads.getJob({ namespace: "team", name: "first" }))?.position, 1);
  });
});
