/** What is deleted or made while another call names it: each of the two is answered as if it came before or after. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { claimUid } from "../../../src/adapters/store/admin/cluster-uids.ts";
import { updateNamespace } from "../../../src/adapters/store/admin/namespaces.ts";
import { createQueue, deleteQueue } from "../../../src/adapters/store/admin/queues.ts";
import { registerPool } from "../../../src/adapters/store/admin/register-pool.ts";
import type { Db, Executor } from "../../../src/adapters/store/db/db.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { Decision } from "../../../src/core/reconcile/decision.ts";
import { onPostgres } from "../../support/databases.ts";
import { keyed } from "../../support/keyed.ts";
import { inOrder } from "../in-order.ts";
import { NOW, plannedFor } from "../jobs.ts";
import { poolChange } from "../ledger-fixture.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

const ACTOR = { version: 0, actor: "admin" };

const queueOf = (name: string, parent?: string) => ({
  name,
  strategy: "BEST_EFFORT_FIFO" as const,
  quotas: [],
  ...(parent === undefined ? {} : { parent }),
});

onPostgres((openDb) => {
  let db: Db;
  let planner: TestPlanner;
  let store: TestPlanner["store"];
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    planner = await freshPlanner(db);
    store = planner.store;
    for (const name of ["passing", "staying"]) {
      await store.admin.createNamespace({ name, project: "default", defaultQueue: "research" });
      await store.admin.ensureQueue(queueOf(name));
    }
  });

  test("a job that is deleted while its refusal is recorded takes the refusal with it", async () => {
    const [job, kept] = [await planner.submit(), await planner.submit()];
    const refusalOf = ({ uid }: Job, message: string) => ({
      jobUid: uid,
      generation: 1,
      reason: "QuotaExhausted",
      message,
      clusters: [],
      quotas: [],
      retryAtMs: null,
    });
    const refuse = (message: string, causeKey: number) => {
      const refusals = [job, kept].map((one) => keyed(refusalOf(one, message), causeKey));
      return store.planner.recordRefusals(refusals, planner.plannerEpoch, NOW + 1);
    };
    await refuse("needs 8", 1);
    // The reason stays, so the record of the job does, and nothing but the refusal is written.
    await db.query("delete from refusals");
    const { job: refused, bucket } = (await store.worker.loadJob(job.uid)) ?? {};
    const lease = (await store.worker.takeBuckets("w1")).find((one) => one.bucket === bucket);
    assert.ok(refused && lease);
    const forget: Decision = { record: null, forget: true, actions: [], recheckAtMs: null };
    const first = () => store.worker.record(refused, forget, lease, NOW);
    const second = () => refuse("needs 7", 2);
    const [forgotten] = await inOrder(db, { table: "jobs", name: job.uid }, { first, second });
    assert.equal(forgotten, "recorded");
    const refusals = await db.query("select job_uid, refusal #>> '{cause,key}' as key from refusals");
    assert.deepEqual(refusals, [{ job_uid: kept.uid, key: "2" }]);
  });

  describe("a cluster that is deleted", () => {
    const row = { table: "clusters", name: "real" } as const;
    const told = { cluster: "real", uid: "uid-1" };
    const drop = () => store.clusters.remove("real", false);
    beforeEach(async () => {
      const credentials = { kind: "sealed" };
      await store.clusters.register({ name: "real", labels: {}, flavors: [], credentials });
    });

    for (const [how, give] of Object.entries({
      "claims its uid": (): Promise<unknown> => store.clusters.claimUid(told),
      "is given its uid": (): Promise<unknown> => store.clusters.setUid(told),
    })) {
      test(`while it ${how} has no uid`, async () => {
        const [deleted] = await inOrder(db, row, { first: drop, second: give });
        assert.equal(deleted.kind, "done");
        assert.deepEqual(await db.query("select 1 from cluster_uids"), []);
      });
    }

    test("while its capacity is recorded has none", async () => {
      const seenNow = { cluster: "real", reachable: true as const, since: null, changes: [] };
      const second = () => store.clusters.recordCapacity(seenNow);
      const [, recorded] = await inOrder(db, row, { first: drop, second });
      assert.deepEqual(recorded, { epoch: null, changed: false });
    });

    test("while it is changed is not found", async () => {
      const change = { name: "real", labels: {}, flavors: [], credentials: null, version: 0 };
      const [, changed] = await inOrder(db, row, { first: drop, second: () => store.clusters.update(change) });
      assert.equal(changed.kind, "notFound");
    });

    test("while it is registered again is a new one", async () => {
      const again = { name: "real", labels: { again: "yes" }, flavors: [], credentials: { kind: "sealed" } };
      const [deleted, made] = await inOrder(db, row, { first: drop, second: () => store.clusters.register(again) });
      assert.equal(deleted.kind, "done");
      assert.ok(["done", "exists"].includes(made.kind), made.kind);
    });
  });

  test("a cluster that is forgotten while a gang is admitted to it takes the gang no more", async () => {
    const job = await planner.submit();
    const first = () => store.clusters.remove("east", true);
    const second = () => planner.admit(plannedFor(job), { amount: 1 });
    const [deleted, admitted] = await inOrder(db, { table: "clusters", name: "east" }, { first, second });
    assert.equal(deleted.kind, "done");
    assert.equal(admitted, "stale");
    assert.equal((await planner.load(job.uid)).status.phase, "WAITING");
  });

  describe("a queue that is deleted", () => {
    const row = { table: "queues", name: "passing" } as const;
    const drop = () => store.admin.deleteQueue("passing");
    const namespace = { name: "new", project: "default", defaultQueue: "passing", namesQueue: true };
    const misplaced = { kind: "misplaced", problem: { kind: "unknownParent", parent: "passing" } };
    const unknown = { kind: "unknownQueue", name: "passing" };

    const NAMING: Record<string, { call: () => Promise<{ kind: string }>; refused: unknown }> = {
      "a new queue below it": { call: () => store.admin.createQueue(queueOf("new", "passing")), refused: misplaced },
      "another queue that moves below it": {
        call: () => store.admin.updateQueue({ ...queueOf("staying", "passing"), version: 0 }),
        refused: misplaced,
      },
      "a pool that is charged to it": {
        call: () => store.pools.register(poolChange({ name: "ex:new", queue: "passing" }), ACTOR),
        refused: unknown,
      },
      "a new namespace": { call: () => store.admin.createNamespace(namespace), refused: unknown },
      "a changed namespace": {
        call: () => store.admin.updateNamespace({ ...namespace, name: "staying", version: 0 }),
        refused: unknown,
      },
    };
    for (const [name, { call, refused }] of Object.entries(NAMING)) {
      test(`refuses ${name}`, async () => {
        const [deleted, answer] = await inOrder(db, row, { first: drop, second: call });
        assert.equal(deleted.kind, "done");
        assert.deepEqual(answer, refused);
      });
      test(`stays if ${name} came first`, async () => {
        const [answer, deleted] = await inOrder(db, row, { first: call, second: drop });
        assert.deepEqual([answer.kind, deleted.kind], ["done", "inUse"]);
      });
    }

    test("while it is changed is not found", async () => {
      const second = () => store.admin.updateQueue({ ...queueOf("passing"), version: 0 });
      assert.deepEqual((await inOrder(db, row, { first: drop, second }))[1], { kind: "notFound" });
    });
  });

  describe("a pool that is deleted", () => {
    const row = { table: "quota_domains", name: "default" } as const;
    const drop = () => store.pools.remove("ex:passing", ACTOR);
    const quotas = [{ flavor: "ex:passing", resource: "nvidia.com/gpu", nominal: 1 }];
    const name = () => store.admin.updateQueue({ ...queueOf("passing"), quotas, version: 0 });
    beforeEach(async () => {
      await store.pools.register(poolChange({ name: "ex:passing", quota: 1 }), ACTOR);
    });

    test("is made again by a queue that names it", async () => {
      const [deleted, changed] = await inOrder(db, row, { first: drop, second: name });
      assert.deepEqual([deleted.kind, changed.kind], ["done", "done"]);
      assert.equal((await store.pools.get("ex:passing"))?.quota, null);
    });

    test("stays if a queue named it first", async () => {
      const [changed, deleted] = await inOrder(db, row, { first: name, second: drop });
      assert.deepEqual([changed.kind, deleted.kind], ["done", "inUse"]);
    });
  });

  test("a namespace that is deleted while it is changed is not found", async () => {
    const row = { table: "namespaces", name: "passing" } as const;
    const first = () => store.admin.deleteNamespace("passing");
    const change = { name: "passing", project: "vision", defaultQueue: "research", version: 0 };
    const second = () => store.admin.updateNamespace(change);
    assert.deepEqual((await inOrder(db, row, { first, second }))[1], { kind: "notFound" });
  });

  describe("made just after a call has found none of it, and so not locked by that call", () => {
    test("a queue is not deleted", async () => {
      const make = () => store.admin.createQueue(queueOf("late"));
      const answer = await meanwhile(db, make, (late) => deleteQueue(late, "late", { actor: "admin", nowMs: NOW }));
      assert.deepEqual(answer, { kind: "notFound" });
      assert.notEqual(await store.admin.getQueue("late"), null);
    });

    test("a queue is no parent of a new one", async () => {
      const make = () => store.admin.createQueue(queueOf("late"));
      const bounds = { poolsMax: 10, nowMs: NOW };
      const answer = await meanwhile(db, make, (late) =>
        createQueue(late, queueOf("new", "late"), { actor: "admin", ...bounds }),
      );
      assert.deepEqual(answer, { kind: "misplaced", problem: { kind: "unknownParent", parent: "late" } });
    });

    test("a queue is charged for no pool", async () => {
      const make = () => store.admin.createQueue(queueOf("late"));
      const pool = poolChange({ name: "ex:new", queue: "late" });
      const by = { ...ACTOR, poolsMax: 10, nowMs: NOW };
      const answer = await meanwhile(db, make, (late) => registerPool(late, pool, by));
      assert.deepEqual(answer, { kind: "unknownQueue", name: "late" });
    });

    test("a namespace is not changed", async () => {
      const settings = { name: "late", project: "default", defaultQueue: "research" };
      const make = () => store.admin.createNamespace({ ...settings, namesQueue: true });
      const change = { ...settings, project: "vision", version: 0 };
      const answer = await meanwhile(db, make, (late) => updateNamespace(late, change, NOW));
      assert.deepEqual(answer, { kind: "notFound" });
      assert.equal((await store.admin.getNamespace("late"))?.project, "default");
    });

    test("a cluster claims no uid", async () => {
      const cluster = { name: "late", labels: {}, flavors: [], credentials: { kind: "sealed" } };
      const make = () => store.clusters.register(cluster);
      await meanwhile(db, make, (late) => late.tx((tx) => claimUid(tx, { cluster: "late", uid: "uid-1" })));
      assert.deepEqual(await db.query("select 1 from cluster_uids"), []);
    });
  });
});

/** Runs a call, and `make` right after the call's first statement. */
async function meanwhile<T>(
  db: Db,
  make: () => Promise<{ readonly kind: string }>,
  call: (db: Db) => Promise<T>,
): Promise<T> {
  const made: string[] = [];
  const interrupted = (tx: Executor): Executor => ({
    query: async (text, params) => {
      const rows = await tx.query<never>(text, params);
      if (made.length === 0) made.push((await make()).kind);
      return rows;
    },
  });
  const answer = await call({ ...db, tx: (fn) => db.tx((tx) => fn(interrupted(tx))) });
  assert.deepEqual(made, ["done"]);
  return answer;
}
