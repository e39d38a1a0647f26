/** Limits of namespaces and projects: waiting jobs, pods and bytes of templates. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Job } from "../../../src/core/job/job.ts";
import { NO_TENANT_LIMITS, type TenantLimits, type TenantName } from "../../../src/core/job/tenant-limits.ts";
import { changeJob } from "../../../src/core/kinds/change-job.ts";
import { onEachDatabase, onPostgres } from "../../support/databases.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { freshStore, type TestStore } from "../db.ts";
import { inOrder } from "../in-order.ts";
import { NOW, newJob, sentOf } from "../jobs.ts";

const NLP: TenantName = { kind: "namespace", name: "nlp" };
const PROJECT: TenantName = { kind: "project", name: "default" };

function actions(store: () => TestStore) {
  const request = (of: Parameters<typeof newJob>[0] & { readonly dryRun?: boolean } = {}) => {
    const { dryRun = false, ...rest } = of;
    const job = newJob({ namespace: "nlp", ...rest });
    return { job, sent: sentOf(job), requestId: `for-${job.uid}`, dryRun };
  };
  return {
    request,
    create: (of?: Parameters<typeof request>[0]) => store().intake.createJob(request(of)),
    limit: (tenant: TenantName, limits: Partial<TenantLimits>) =>
      store().admin.setTenantLimits({ tenant, limits: { ...NO_TENANT_LIMITS, ...limits } }, "ann"),
  };
}

function kindsOf(outcomes: readonly ({ readonly kind: string } | null)[]) {
  return outcomes.map((outcome) => outcome?.kind ?? null);
}

function count<T>(all: readonly T[], wanted: T): number {
  return all.filter((one) => one === wanted).length;
}

const podsOf = ({ spec }: Job) => Object.values(spec.replicaSpecs).reduce((sum, { replicas }) => sum + replicas, 0);
const bytesOf = ({ spec }: Job) => Buffer.byteLength(JSON.stringify(spec));

async function freshTenants(db: Db): Promise<TestStore> {
  const { store } = await freshStore(db);
  for (const name of ["nlp", "vision"]) {
    await store.admin.ensureNamespace({ name, project: "default", defaultQueue: "research" });
  }
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
    store = await freshTenants(db);
  });

  test("a create beyond a limit of its namespace is refused, and other namespaces take jobs", async () => {
    await limit(NLP, { maxWaitingJobs: 2 });
    assert.deepEqual([(await create()).kind, (await create()).kind], ["created", "created"]);
    const full = { kind: "noRoom", scope: NLP, limit: "maxWaitingJobs", used: 2, asked: 1, max: 2 };
    assert.deepEqual([await create(), await create({ dryRun: true })], [full, full]);
    assert.equal((await create({ namespace: "vision" })).kind, "created");
    await limit(NLP, {});
    assert.equal((await create()).kind, "created");
    assert.deepEqual(await store.admin.listTenants(), []);
  });

  test("the namespaces of a project share its limits", async () => {
    await limit(PROJECT, { maxWaitingJobs: 2 });
    await create();
    await create({ namespace: "vision" });
    const full = { kind: "noRoom", scope: PROJECT, limit: "maxWaitingJobs", used: 2, asked: 1, max: 2 };
    assert.deepEqual(await create(), full);
  });

  test("pods and bytes of jobs that have not ended count", async () => {
    const first = request();
    const [pods, bytes] = [podsOf(first.job), bytesOf(first.job)];
    await store.intake.createJob(first);
    await limit(NLP, { maxPods: 2 * pods, maxTemplateBytes: 10 * bytes });
    assert.equal((await create()).kind, "created");
    const full = { kind: "noRoom", scope: NLP, limit: "maxPods", used: 2 * pods, asked: pods, max: 2 * pods };
    assert.deepEqual(await create(), full);
    await limit(NLP, { maxTemplateBytes: 2 * bytes });
    const large = { limit: "maxTemplateBytes", used: 2 * bytes, asked: bytes, max: 2 * bytes };
    const refused = await create();
    assert.deepEqual(refused, { kind: "noRoom", scope: NLP, ...large, asked: bytesOf(newJob({ namespace: "nlp" })) });
    const { uid } = first.job;
    await db.query("update jobs set phase = 'FAILED', completion_ms = $2 where uid = $1", [uid, NOW]);
    assert.equal((await create()).kind, "created");
  });

  test("a list tells limits and what is used", async () => {
    const { job } = request();
    await store.intake.createJob(request());
    const { uid } = job;
    await store.intake.createJob({ ...request(), job });
    await db.query("update jobs set phase = 'RUNNING' where uid = $1", [uid]);
    await limit(PROJECT, { maxRunningJobs: 3 });
    await limit(NLP, { maxPods: 7 });
    const use = {
      waitingJobs: 1,
      runningJobs: 1,
      pods: 2 * podsOf(job),
      templateBytes: 2 * bytesOf(job),
      robotTokens: 0,
    };
    assert.deepEqual(await store.admin.listTenants(), [
      { tenant: NLP, limits: { ...NO_TENANT_LIMITS, maxPods: 7 }, use },
      { tenant: PROJECT, limits: { ...NO_TENANT_LIMITS, maxRunningJobs: 3 }, use },
    ]);
  });

  test("of concurrent batches, as many jobs are created as there is room for", async () => {
    await limit(NLP, { maxWaitingJobs: 7 });
    await limit(PROJECT, { maxWaitingJobs: 12 });
    const batches = Array.from({ length: 8 }, () =>
      ["nlp", "vision", "nlp"].map((namespace) => request({ namespace })),
    );
    const outcomes = await Promise.all(batches.map((batch) => store.intake.createJobs(batch)));
    const left = batches.flatMap((batch, at) => batch.filter((_, place) => outcomes[at]?.[place] === null));
    const alone = await Promise.all(left.map((one) => store.intake.createJob(one)));
    const created = [...kindsOf(outcomes.flat()), ...kindsOf(alone)];
    assert.equal(count(created, "created"), 12);
    const ofNlp = await db.query("select 1 from jobs where namespace = 'nlp'");
    assert.ok(ofNlp.length <= 7, `${ofNlp.length}`);
  });

  test("an update that adds pods needs room, and others do not", async () => {
    const first = request();
    await store.intake.createJob(first);
    const pods = podsOf(first.job);
    await limit(PROJECT, { maxPods: pods + 1 });
    const kind = OWN_KINDS.kindOf(first.job.spec.kind)!;
    const change = (of: Omit<Parameters<typeof changeJob>[2], "version">) =>
      store.intake.changeJob(first.job, (job) => changeJob(job, kind, { version: null, ...of }, NOW), NOW);
    const [role = ""] = Object.keys(first.job.spec.replicaSpecs);
    const replicas = first.job.spec.replicaSpecs[role]?.replicas ?? 0;
    const full = { kind: "noRoom", scope: PROJECT, limit: "maxPods", used: pods, asked: 2, max: pods + 1 };
    assert.deepEqual(await change({ replicas: { [role]: replicas + 2 } }), full);
    assert.equal((await change({ replicas: { [role]: replicas + 1 } })).kind, "changed");
    await limit(PROJECT, { maxPods: 1 });
    assert.equal((await change({ priority: 5 })).kind, "changed");
    assert.equal((await change({ replicas: { [role]: replicas } })).kind, "changed");
  });

  test("a change of limits is audited, and limits of a namespace end with it", async () => {
    assert.equal(await limit({ kind: "namespace", name: "other" }, { maxPods: 1 }), null);
    await limit(NLP, { maxPods: 1 });
    await limit(NLP, { maxPods: 2 });
    const entries = await db.query<{ actor: string; subject: string; details: unknown }>(
      "select actor, subject, details from audit_entries where action = 'SetTenantLimits' order by id",
    );
    const [one, two] = [1, 2].map((maxPods) => ({ ...NO_TENANT_LIMITS, maxPods }));
    const by = { actor: "ann", subject: "namespace nlp" };
    assert.deepEqual(entries, [
      { ...by, details: { before: null, after: one } },
      { ...by, details: { before: one, after: two } },
    ]);
    assert.equal((await store.admin.deleteNamespace("nlp")).kind, "done");
    assert.deepEqual(await store.admin.listTenants(), []);
  });
});

onPostgres((openDb) => {
  let db: Db;
  let store: TestStore;
  const { create, limit } = actions(() => store);
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = await freshTenants(db);
  });

  for (const tenant of [NLP, PROJECT]) {
    test(`a create that waits for a new limit of a ${tenant.kind} counts against it`, async () => {
      await create();
      const [, created] = await inOrder(db, { table: "namespaces", name: "nlp" } as never, {
        first: () => limit(tenant, { maxWaitingJobs: 1 }),
        second: () => create(),
      });
      assert.equal(created.kind, "noRoom");
    });
  }
});
