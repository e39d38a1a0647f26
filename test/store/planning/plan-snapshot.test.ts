import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { loadJob } from "../../../src/adapters/store/jobs/load-job.ts";
import { refreshGangs } from "../../../src/adapters/store/planning/refresh-gangs.ts";
import { treeQueue } from "../../../src/core/plan/model/tree-queue.ts";
import { queueLimitsOf } from "../../../src/core/quota/tree.ts";
import { CountingDb } from "../../support/counting-db.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { plan } from "../../support/plan.ts";
import { planSnapshot, snapshotOf } from "../../support/snapshot.ts";
import { FLAVOR, NOW, newJob, sentOf } from "../jobs.ts";
import { allocation, freshLedger, poolChange } from "../ledger-fixture.ts";

onEachDatabase((openDb) => {
  let db: Db;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  let ledger: Awaited<ReturnType<typeof freshLedger>>;
  beforeEach(async () => {
    ledger = await freshLedger(db);
  });

  const quota = { flavor: FLAVOR, resource: "nvidia.com/gpu" };

  async function hold(amount: number, of: Parameters<typeof allocation>[0] = {}): Promise<void> {
    const made = ledger.grant([allocation({ pool: FLAVOR, token: `t${amount}`, amount, ...of })]);
    const [outcome] = await ledgerAt(ledger.store, NOW).commit(ledger.epoch, [made]);
    assert.equal(outcome?.kind, "committed");
  }

  test("a snapshot has the pools of gangs, their use at each limited level, and their callers", async () => {
    const { store } = ledger;
    await store.pools.register(poolChange({ name: FLAVOR, quota: 12, projectDefault: 9 }), {
      version: 0,
      actor: "admin",
    });
    await hold(4, { queue: "research" });
    await hold(3, { project: "speech" });
    const quiet = await snapshotOf(db);
    assert.deepEqual(quiet.pools, [{ pool: FLAVOR, quota: 12, projectDefault: 9, namespaceDefault: null }]);
    const sums = quiet.sums.map(({ scope, used }) => [JSON.stringify(scope), used]).sort();
    assert.deepEqual(sums, [
      [JSON.stringify({ kind: "pool", pool: FLAVOR }), 7],
      [JSON.stringify({ kind: "project", pool: FLAVOR, project: "speech" }), 3],
      [JSON.stringify({ kind: "project", pool: FLAVOR, project: "vision" }), 4],
      [JSON.stringify({ kind: "queue", pool: FLAVOR, queue: "research" }), 4],
    ]);
    const job = newJob();
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    const place = { caller: "flyte", pool: FLAVOR, namespace: "team" };
    const { callers } = await snapshotOf(db);
    assert.deepEqual(
      [...callers].sort((a, b) => b.amount - a.amount),
      [
        { ...place, project: "vision", queue: "research", amount: 4 },
        { ...place, project: "speech", queue: null, amount: 3 },
      ],
    );
  });

  test("the first waiting jobs of a queue are those of the highest priority, then the oldest", async () => {
    const { store } = ledger;
    const strategy = "BEST_EFFORT_FIFO" as const;
    await store.admin.createQueue({ name: "other", strategy, quotas: [] });
    const submit = async (name: string, queue: string, priority: number) => {
      const plain = newJob({ name });
      const schedulingPolicy = { ...plain.spec.runPolicy.schedulingPolicy, queue };
      const runPolicy = { ...plain.spec.runPolicy, schedulingPolicy };
      const job = { ...plain, spec: { ...plain.spec, priority, runPolicy } };
      await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    };
    await submit("low", "research", 0);
    await submit("high", "research", 9);
    await submit("middle", "research", 5);
    await submit("elsewhere", "other", 9);
    const names = async (max: number) => {
      const waiting = await store.explain.firstWaiting({ queue: "research", max });
      return waiting.map(({ name }) => name).sort();
    };
    assert.deepEqual(
      [await names(1), await names(2), await names(9)],
      [["high"], ["high", "middle"], ["high", "low", "middle"]],
    );
  });

  test("a snapshot reads no template of a job", async () => {
    const { store } = ledger;
    const secret = "3c1d-only-in-templates";
    const plain = newJob();
    const container = { name: "pytorch", env: [{ name: "A", value: secret }] };
    const Worker = { replicas: 2, restartPolicy: "Never" as const, template: { spec: { containers: [container] } } };
    const job = { ...plain, spec: { ...plain.spec, replicaSpecs: { Worker } } };
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    const reading = new CountingDb(db);
    assert.equal(await refreshGangs(reading, OWN_KINDS), 0);
    const { waiting } = await planSnapshot(reading, { kinds: OWN_KINDS, asks: new Map() });
    assert.deepEqual(
      waiting.map(({ uid, ask }) => [uid, ask.roles[0]?.replicas]),
      [[job.uid, 2]],
    );
    const withTemplates = () => reading.reads.filter((text) => text.includes(secret)).length;
    assert.equal(withTemplates(), 0);
    await loadJob(reading, job.uid);
    assert.equal(withTemplates(), 1, "a read of a template is seen");
  });

  test("a tree of queues means the same to the planner as to the ledger", async () => {
    const { store } = ledger;
    const strategy = "BEST_EFFORT_FIFO" as const;
    await store.admin.createQueue({ name: "all", strategy, quotas: [{ ...quota, nominal: 3 }] });
    const shares = [{ ...quota, nominal: 4, borrowingLimit: 2, lendingLimit: 1 }];
    await store.admin.createQueue({ name: "left", parent: "all", strategy, quotas: shares });
    await store.admin.createQueue({ name: "right", parent: "all", strategy, quotas: [{ ...quota, nominal: 5 }] });
    const { queues } = await snapshotOf(db);
    const { queues: recorded } = await ledgerAt(store).readLimits();
    const byName = (limits: typeof recorded) => [...limits].sort((a, b) => (a.queue < b.queue ? -1 : 1));
    assert.deepEqual(byName(queueLimitsOf(queues.map(treeQueue))), byName(recorded));
  });

  test("the refusal of a gang that waits for tokens of callers names them", async () => {
    const { store } = ledger;
    await store.pools.register(poolChange({ name: FLAVOR, quota: 8 }), { version: 0, actor: "admin" });
    await hold(8);
    const plain = newJob();
    const container = { name: "pytorch", resources: { requests: { "nvidia.com/gpu": 1 } } };
    const template = { spec: { containers: [container] } };
    const replicaSpecs = { Worker: { replicas: 4, restartPolicy: "OnFailure" as const, template } };
    const job = { ...plain, spec: { ...plain.spec, replicaSpecs } };
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    const made = plan(await snapshotOf(db), { nowMs: NOW });
    const [refusal] = made.refusals;
    assert.equal(refusal?.quotas[0]?.scope.kind, "pool");
    assert.deepEqual(refusal?.quotas[0]?.heldBy, ["caller flyte"]);
  });
});
