import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { silentClusters } from "../../../src/adapters/store/admin/cluster-capacity.ts";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { type CapacityEntry, capacityOf, type EntryChange } from "../../../src/core/plan/model/capacity-entry.ts";
import { DEFAULT_POLICY } from "../../../src/core/plan/model/queue-policy.ts";
import { completeCapacity } from "../../support/complete-capacity.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { snapshotOf } from "../../support/snapshot.ts";
import { freshStore, type TestStore } from "../db.ts";
import { FLAVOR, NOW, newJob, sentOf } from "../jobs.ts";

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

  const QUOTAS = [
    { flavor: "gpu/b", resource: "nvidia.com/gpu", nominal: 4 },
    { flavor: "gpu/a", resource: "nvidia.com/gpu", nominal: 0 },
  ];

  test("a queue keeps the order of its quotas", async () => {
    const made = await store.admin.createQueue({ name: "batch", strategy: "STRICT_FIFO", quotas: QUOTAS });
    assert.ok(made.kind === "done");
    assert.deepEqual(made.record.quotas, QUOTAS);
    assert.deepEqual(await store.admin.getQueue("batch"), made.record);
    const turned = { ...made.record, quotas: [...QUOTAS].reverse() };
    const changed = await store.admin.updateQueue(turned);
    assert.ok(changed.kind === "done");
    assert.deepEqual(changed.record.quotas, turned.quotas);
    assert.equal(changed.record.version, 2);
    const planned = (await snapshotOf(db)).queues.find(({ name }) => name === "batch");
    const limits = { maxRunningJobs: null, maxWaitingJobs: null };
    const settings = { name: "batch", strategy: "STRICT_FIFO", stopPolicy: "NONE", ...limits, parent: null };
    assert.deepEqual(planned, { ...settings, policy: DEFAULT_POLICY, quotas: turned.quotas });
  });

  test("changes of queues tell a taken name, an unknown queue and a stale version", async () => {
    const queue = { name: "batch", strategy: "STRICT_FIFO" as const, quotas: [] };
    assert.equal((await store.admin.updateQueue({ ...queue, version: 0 })).kind, "notFound");
    await store.admin.createQueue(queue);
    assert.equal((await store.admin.createQueue(queue)).kind, "exists");
    assert.equal((await store.admin.updateQueue({ ...queue, version: 2 })).kind, "stale");
    assert.equal((await store.admin.updateQueue({ ...queue, version: 1 })).kind, "done");
    assert.equal((await store.admin.updateQueue({ ...queue, version: 0 })).kind, "done");
    assert.equal((await store.admin.deleteQueue("batch")).kind, "done");
    assert.equal((await store.admin.deleteQueue("batch")).kind, "notFound");
  });

  test("queues form trees: no circle, no unknown parent, and no queue with others below it is deleted", async () => {
    const named = (name: string, parent: string | null) => ({
      name,
      parent,
      strategy: "STRICT_FIFO" as const,
      quotas: [],
    });
    const kindOf = (outcome: { kind: string }) => outcome.kind;
    const { admin } = store;
    assert.deepEqual(await admin.createQueue(named("a", "nowhere")), {
      kind: "misplaced",
      problem: { kind: "unknownParent", parent: "nowhere" },
    });
    assert.equal(kindOf(await admin.createQueue(named("a", "a"))), "misplaced");
    assert.equal(kindOf(await admin.createQueue(named("a", null))), "done");
    const borrowing = [{ flavor: "gpu/b", resource: "nvidia.com/gpu", nominal: 0, borrowingLimit: 2, lendingLimit: 1 }];
    const b = await admin.createQueue({ ...named("b", "a"), quotas: borrowing });
    assert.ok(b.kind === "done");
    assert.deepEqual([b.record.parent, b.record.quotas], ["a", borrowing]);
    assert.equal(kindOf(await admin.createQueue(named("b", "b"))), "exists");
    assert.deepEqual(await admin.updateQueue({ ...named("a", "b"), version: 0 }), {
      kind: "misplaced",
      problem: { kind: "circle", path: ["a", "b", "a"] },
    });
    assert.deepEqual(await admin.deleteQueue("a"), { kind: "inUse", by: "queue b, which is below it" });
    const freed = await admin.updateQueue({ ...named("b", null), version: 1 });
    assert.deepEqual(freed.kind === "done" && [freed.record.parent, freed.record.version], [null, 2]);
    assert.equal(kindOf(await admin.deleteQueue("a")), "done");
  });

  test("of two queues that are put below each other at once, one is refused", async () => {
    const named = (name: string, parent: string | null) => ({
      name,
      parent,
      strategy: "STRICT_FIFO" as const,
      quotas: [],
    });
    for (const name of ["a", "b"]) await store.admin.createQueue(named(name, null));
    const outcomes = await Promise.all([
      store.admin.updateQueue({ ...named("a", "b"), version: 0 }),
      store.admin.updateQueue({ ...named("b", "a"), version: 0 }),
    ]);
    assert.deepEqual(outcomes.map(({ kind }) => kind).sort(), ["done", "misplaced"]);
  });

  test("a queue is in use while a live job or a namespace names it", async () => {
    await store.admin.createQueue({ name: "batch", strategy: "STRICT_FIFO", quotas: [] });
    const job = newJob({ name: "train", queue: "batch" });
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    assert.deepEqual(await store.admin.deleteQueue("batch"), { kind: "inUse", by: "job team/train" });
    assert.deepEqual(await store.admin.deleteQueue("research"), { kind: "inUse", by: "namespace team" });
    const shown = await store.admin.getQueue("batch");
    assert.equal(shown?.waiting, 1);
  });

  test("ensuring a queue or a namespace leaves an existing one as it is", async () => {
    const before = await store.admin.getQueue("research");
    await store.admin.ensureQueue({ name: "research", strategy: "STRICT_FIFO", quotas: [] });
    assert.deepEqual(await store.admin.getQueue("research"), before);
    await store.admin.ensureNamespace({ name: "team", project: "p", defaultQueue: "research" });
    await store.admin.ensureNamespace({ name: "team", project: "q", defaultQueue: "research" });
    assert.equal((await store.admin.getNamespace("team"))?.project, "p");
  });

  test("a namespace keeps its pod policy until an update names another one", async () => {
    const namespace = { name: "policed", project: "vision", defaultQueue: "research" };
    const podPolicy = { level: "restricted" as const, allow: ["host-path=/data:ro"], limits: { image: ["a/*"] } };
    const made = await store.admin.createNamespace({ ...namespace, podPolicy });
    assert.deepEqual(made.kind === "done" && made.record.podPolicy, podPolicy);
    await store.admin.updateNamespace({ ...namespace, project: "speech", version: 0 });
    assert.deepEqual((await store.admin.getNamespace("policed"))?.podPolicy, podPolicy);
    assert.deepEqual((await store.intake.facts({ namespace: "policed" })).namespace, {
      project: "speech",
      defaultQueue: "research",
      podPolicy,
    });
    const other = { level: null, allow: [], limits: {} };
    const changed = await store.admin.updateNamespace({ ...namespace, podPolicy: other, version: 0 });
    assert.deepEqual(changed.kind === "done" && changed.record.podPolicy, other);
    await store.admin.deleteNamespace("policed");
  });

  test("a namespace is created, changed and deleted, unless it has a job", async () => {
    const namespace = { name: "team", project: "vision", defaultQueue: "research" };
    const made = await store.admin.createNamespace(namespace);
    assert.deepEqual(made, {
      kind: "done",
      record: {
        ...namespace,
        podPolicy: null,
        keepFailureLogs: true,
        onClusterLost: "MOVE",
        version: 1,
        createTimeMs: NOW,
      },
    });
    assert.equal((await store.admin.createNamespace(namespace)).kind, "exists");
    const changed = await store.admin.updateNamespace({ ...namespace, project: "speech", version: 1 });
    assert.ok(changed.kind === "done" && changed.record.version === 2);
    await store.admin.updateNamespace({ ...namespace, onClusterLost: "WAIT", version: 2 });
    const noted = await db.query<{ details: { before: object; after: object } }>(
      "select details from audit_entries where action = 'UpdateNamespace' order by id desc limit 1",
    );
    const settings = { project: "speech", defaultQueue: "research", podPolicy: null, keepFailureLogs: true };
    assert.deepEqual(noted[0]?.details, {
      before: { ...settings, onClusterLost: "MOVE" },
      after: { ...settings, project: "vision", onClusterLost: "WAIT" },
    });
    assert.equal((await store.admin.updateNamespace({ ...namespace, version: 1 })).kind, "stale");
    assert.equal((await store.admin.updateNamespace({ ...namespace, name: "x", version: 1 })).kind, "notFound");
    const job = newJob({ name: "train" });
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    assert.deepEqual(await store.admin.deleteNamespace("team"), { kind: "inUse", by: "job team/train" });
    assert.equal((await store.admin.deleteNamespace("x")).kind, "notFound");
  });

  const N1: CapacityEntry & { kind: "node" } = {
    kind: "node",
    name: "n1",
    node: {
      name: "n1",
      labels: {},
      taints: [],
      unschedulable: false,
      allocatable: { cpu: 4000 },
      free: { cpu: 1000 },
    },
    members: [{ jobUid: "u", admission: 1, role: "Worker", index: 0 }],
  };
  const CAPACITY = capacityOf([N1]);

  test("a cluster's record tells whether a report of its capacity has changed it", async () => {
    const { epoch, changed } = await store.clusters.recordCapacity(completeCapacity("east", [N1]));
    assert.equal(changed, true);
    const report = (changes: readonly EntryChange[]) =>
      store.clusters.recordCapacity({ cluster: "east", reachable: true, since: epoch, changes });
    assert.deepEqual(await report([]), { epoch, changed: false });
    const shown = await store.admin.getCluster("east");
    assert.deepEqual(shown?.capacity, CAPACITY);
    assert.equal(shown?.observedMs, NOW);
    const empty = { ...N1, members: [] };
    assert.deepEqual(await report([{ key: N1, entry: empty }]), { epoch, changed: true });
    assert.equal((await store.clusters.recordCapacity({ cluster: "east", reachable: false })).changed, true);
    assert.equal(await store.clusters.markUnreachable("east", null), false);
    assert.equal((await silentClusters(db)).get("east")?.sinceMs, NOW, "since the first report");
    const planned = (await snapshotOf(db)).clusters.find(({ name }) => name === "east");
    assert.equal(planned?.reachable, false);
    assert.deepEqual(planned?.capacity, { ...CAPACITY, seen: [] });
    assert.deepEqual(await report([]), { epoch, changed: true }, "it is reachable again");
    assert.equal((await silentClusters(db)).has("east"), false);
    await store.clusters.recordCapacity({ cluster: "east", reachable: false, sinceMs: NOW - 40_000 });
    assert.deepEqual((await silentClusters(db)).get("east"), { sinceMs: NOW - 40_000, unusable: null, lostMs: null });
    const refused = { cluster: "east", reachable: false, sinceMs: NOW - 1, unusable: "its token was revoked" } as const;
    assert.equal((await store.clusters.recordCapacity(refused)).changed, true);
    assert.equal((await store.clusters.recordCapacity(refused)).changed, false);
    const silence = { sinceMs: NOW - 40_000, unusable: "its token was revoked", lostMs: null };
    assert.deepEqual((await silentClusters(db)).get("east"), silence, "nothing was heard of its pods meanwhile");
    assert.deepEqual((await store.admin.getCluster("east"))?.silence, silence);
    assert.equal((await snapshotOf(db)).clusters.find(({ name }) => name === "east")?.unusable, true);
    assert.deepEqual(await report([]), { epoch, changed: true });
  });

  test("registering a cluster again changes its settings and keeps its observed capacity", async () => {
    await store.clusters.recordCapacity(completeCapacity("east", [N1]));
    await store.admin.setCordoned("east", true);
    const flavor = { name: "gpu/new", resource: "nvidia.com/gpu", nodeLabels: {} };
    const again = await store.clusters.simulate({ name: "east", labels: {}, flavors: [flavor] });
    assert.deepEqual(again?.flavors, [flavor]);
    assert.equal(again?.cordoned, true);
    assert.deepEqual(again?.capacity, CAPACITY);
    const same = await store.clusters.simulate({ name: "east", labels: {}, flavors: [flavor] });
    assert.equal(same?.version, again?.version);
  });

  test("cordoning is idempotent, and raises the version", async () => {
    const once = await store.admin.setCordoned("east", true);
    const twice = await store.admin.setCordoned("east", true);
    assert.ok(once.kind === "done" && twice.kind === "done");
    assert.equal(once.record.version, twice.record.version);
    assert.equal((await store.admin.setCordoned("nope", true)).kind, "notFound");
    assert.deepEqual(
      (await store.admin.listClusters()).map(({ name, cordoned }) => [name, cordoned]),
      [
        ["east", true],
        ["west", false],
      ],
    );
  });

  const broken: Record<string, string> = {
    "a sum below zero": "insert into allocation_sums (pool, scope, name, used) values ('p', 'pool', '', -1)",
    "an amount of zero": `
      insert into allocations
        (pool, token, queue, project, namespace, amount, fence, job_uid, admission, granted_ms)
    values ('p', 't', 'q', 'p', 'n', 0, 1, gen_random_uuid(), 1, 0)`,
    "an unknown phase": "update jobs set phase = 'LOST'",
    "an ended job without its time": "update jobs set phase = 'SUCCEEDED'",
    "a job that has not ended with a time": "update jobs set completion_ms = 1",
    "a version of zero": "update jobs set version = 0",
    "a bucket that does not exist": "update jobs set bucket = 1024",
    "a quota beyond 2^53-1": `update queue_quotas set nominal = 9007199254740992`,
    "a second log head": "insert into job_log (only_row, head, pruned_to) values (false, 0, 0)",
  };
  for (const [name, statement] of Object.entries(broken)) {
    test(`the database itself refuses ${name}`, async () => {
      const job = newJob();
      await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
      await assert.rejects(db.query(statement), /violates check constraint/);
    });
  }

  test("pools are made of the flavors of queues and clusters", async () => {
    await store.admin.createQueue({ name: "batch", strategy: "STRICT_FIFO", quotas: QUOTAS });
    const pools = await db.query<{ name: string }>("select name from pools order by name");
    assert.deepEqual(
      pools.map(({ name }) => name),
      ["gpu/a", "gpu/b", FLAVOR],
    );
  });
});
