/** Robots of namespaces and projects: who lists them, and how many there may be. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { RobotScope } from "../../../src/core/access/robot.ts";
import { NO_TENANT_LIMITS, type TenantName } from "../../../src/core/job/tenant-limits.ts";
import { onEachDatabase, onPostgres } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";
import { inOrder } from "../in-order.ts";
import { NOW } from "../jobs.ts";

const NLP: TenantName = { kind: "namespace", name: "nlp" };
const VISION: TenantName = { kind: "namespace", name: "vision" };
const ML: TenantName = { kind: "project", name: "ml" };
const HOUR_MS = 3_600_000;

/** Namespaces nlp and vision of project ml. */
async function freshTenants(db: Db) {
  const { store } = await freshStore(db);
  for (const { name } of [NLP, VISION]) {
    await store.admin.ensureNamespace({ name, project: "ml", defaultQueue: "research" });
  }
  return store;
}

function actions(store: () => TestStore) {
  return {
    make: (name: string, scope: RobotScope, expiresAtMs = NOW + HOUR_MS) => {
      const hash = createHash("sha256").update(name).digest();
      const robot = { name, owner: "ann", scope, expiresAtMs, hash };
      return store().robots.makeRobot(robot, { nowMs: Math.min(NOW, expiresAtMs - 1), max: 100, ownedMax: null });
    },
    limit: (tenant: TenantName, maxRobotTokens: number | null) =>
      store().admin.setTenantLimits({ tenant, limits: { ...NO_TENANT_LIMITS, maxRobotTokens } }, "ann"),
  };
}

const full = (tenant: TenantName, used: number, max = used) => ({ kind: "tenantFull", tenant, used, max });

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  const { make, limit } = actions(() => store);
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = await freshTenants(db);
  });

  test("a robot keeps where it belongs, and a list has those of some namespaces and projects", async () => {
    const scopes: readonly RobotScope[] = [NLP, VISION, ML, { kind: "installation", name: "" }];
    for (const scope of scopes) {
      const made = await make(`of-${scope.name || "all"}`, scope);
      assert.deepEqual(made.kind === "made" && made.robot.scope, scope);
      assert.deepEqual((await store.robots.getRobot(`of-${scope.name || "all"}`))?.scope, scope);
    }
    assert.deepEqual(await make("lost", { kind: "namespace", name: "nowhere" }), { kind: "unknownNamespace" });
    const listed = async (of: { namespaces: readonly string[]; projects: readonly string[] } | null) => {
      const page = await store.robots.listRobots({ after: null, pageSize: 9, listed: of });
      return page !== "badCursor" && page.robots.map(({ name }) => name);
    };
    assert.deepEqual(await listed(null), ["of-all", "of-ml", "of-nlp", "of-vision"]);
    assert.deepEqual(await listed({ namespaces: ["nlp"], projects: [] }), ["of-nlp"]);
    assert.deepEqual(await listed({ namespaces: ["nlp", "vision"], projects: ["ml"] }), [
      "of-ml",
      "of-nlp",
      "of-vision",
    ]);
    assert.deepEqual(await listed({ namespaces: [], projects: ["other"] }), []);
  });

  test("robots whose tokens count are as many as their namespace and its project allow", async () => {
    await limit(NLP, 2);
    await limit(ML, 3);
    // Neither a token that has expired nor one that was revoked counts.
    await make("expired", NLP, NOW);
    await make("revoked", NLP);
    await store.robots.revokeRobot("revoked", NOW);
    assert.equal((await make("one", NLP)).kind, "made");
    assert.equal((await make("two", NLP)).kind, "made");
    assert.deepEqual(await make("three", NLP), full(NLP, 2));
    assert.equal(await store.robots.getRobot("three"), null);
    assert.equal((await make("three", ML)).kind, "made");
    assert.deepEqual(await make("four", VISION), full(ML, 3));
    assert.deepEqual(await make("four", ML), full(ML, 3));
    assert.equal((await make("free", { kind: "installation", name: "" })).kind, "made");
    assert.equal((await make("other", { kind: "project", name: "other" })).kind, "made");
    await store.robots.revokeRobot("one", NOW);
    assert.equal((await make("four", VISION)).kind, "made");
    await limit(ML, 1);
    assert.deepEqual(await make("five", NLP), full(ML, 3, 1));
    await limit(ML, null);
    assert.equal((await make("five", NLP)).kind, "made");
  });

  test("a list of limits tells how many tokens count, and so does the call that sets one", async () => {
    await make("one", NLP);
    await make("two", ML);
    await make("expired", NLP, NOW);
    assert.equal((await limit(NLP, 5))?.use.robotTokens, 1);
    assert.equal((await limit(ML, 5))?.use.robotTokens, 2);
    assert.deepEqual(
      (await store.admin.listTenants()).map(({ tenant, use }) => [tenant.name, use.robotTokens]),
      [
        ["nlp", 1],
        ["ml", 2],
      ],
    );
  });

  test("a robot counts in the project that its namespace had when it was made", async () => {
    await make("one", NLP);
    await store.admin.updateNamespace({ name: "nlp", project: "other", defaultQueue: "research", version: 0 });
    assert.equal((await limit(ML, 1))?.use.robotTokens, 1);
    assert.deepEqual(await make("two", VISION), full(ML, 1));
    assert.equal((await make("two", NLP)).kind, "made");
  });

  test("a namespace is not deleted while the token of one of its robots counts", async () => {
    await make("ci", NLP);
    assert.deepEqual(await store.admin.deleteNamespace("nlp"), { kind: "inUse", by: "robot ci of namespace nlp" });
    await store.robots.revokeRobot("ci", NOW);
    await make("expired", NLP, NOW);
    assert.equal((await store.admin.deleteNamespace("nlp")).kind, "done");
    assert.deepEqual(await make("late", NLP), { kind: "unknownNamespace" });
  });

  test("of robots that are made at once, there are as many as there is room for", async () => {
    await limit(NLP, 3);
    await limit(ML, 5);
    const made = await Promise.all(
      Array.from({ length: 12 }, (_, at) => make(`robot-${at}`, [NLP, VISION, ML][at % 3] ?? NLP)),
    );
    assert.equal(made.filter(({ kind }) => kind === "made").length, 5);
    const ofNlp = await db.query("select 1 from robot_tokens where namespace = 'nlp'");
    assert.ok(ofNlp.length <= 3, `${ofNlp.length}`);
  });
});

onPostgres((openDb) => {
  let db: Db;
  let store: TestStore;
  const { make, limit } = actions(() => store);
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = await freshTenants(db);
  });

  for (const tenant of [NLP, ML, { kind: "project", name: "empty" } as const]) {
    test(`a robot that is made while a limit of ${tenant.kind} ${tenant.name} is set counts against it`, async () => {
      await make("one", tenant);
      const [, second] = await inOrder(
        db,
        { table: "installation" },
        {
          first: () => limit(tenant, 1),
          second: () => make("two", tenant),
        },
      );
      assert.deepEqual(second, full(tenant, 1));
    });
  }
});
