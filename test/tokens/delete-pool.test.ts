import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import type { Durability } from "../../src/core/quota/pools.ts";
import type { TestStore } from "../store/db.ts";
import { FLAVOR } from "../store/jobs.ts";
import { onEachManager } from "./each-manager.ts";
import { allocation, NO_WISHES, POOL, type TestManager } from "./manager.ts";

const ROUNDS = 25;
const CALLERS = 32;

onEachManager((start) => {
  let store: TestStore;
  let at: TestManager;
  beforeEach(async () => {
    ({ at, store } = await start());
  });

  const register = async (durability: Durability = "LEDGER") => {
    const answer = await at.manager.registerPool({ name: POOL, ...NO_WISHES, quota: 10, durability }, 0, "admin");
    assert.ok(answer.kind === "done", answer.kind);
    return answer.record;
  };
  const remove = (version = 0) => at.manager.deletePool(POOL, version, "admin");
  const take = (token: string, amount = 1) =>
    at.manager.allocate({ allocations: [allocation({ token, amount })], holder: "flyte", priority: 0 });
  const give = async (token: string) => {
    const release = { pool: POOL, token, holder: "flyte", project: null, namespace: null };
    return (await at.manager.release([release]))[0]?.kind;
  };

  for (const durability of ["LEDGER", "REDIS"] as const) {
    test(`an empty ${durability} pool is deleted with all that counts in it, and starts again from zero`, async () => {
      const { version } = await register(durability);
      assert.equal((await take("t1", 10)).kind, "granted");
      assert.equal(await give("t1"), "released");
      assert.equal((await remove(version)).kind, "done");
      assert.equal(await at.manager.getPool(POOL), null);
      assert.deepEqual(await take("t1"), { kind: "unknownPool", name: POOL, index: 0 });
      const { counters } = await at.domain("default", durability);
      assert.deepEqual([await counters.used(), await counters.waiting()], [[], []]);
      const again = await register(durability);
      assert.deepEqual([again.version, again.used, again.tokens], [1, 0, 0]);
      assert.equal((await take("t1", 10)).kind, "granted");
      const filter = { action: "DeletePool" as const, actor: null, subject: null };
      const audit = await at.manager.listAudit({ pageSize: 5, after: null, filter });
      assert.ok(audit !== "badCursor");
      const entries = audit.entries.map((entry) => [entry.actor, entry.subject, Object.keys(entry.details)]);
      assert.deepEqual(entries, [["admin", POOL, ["before"]]]);
    });

    test(`a ${durability} pool with a token or a waiting request stays as it is`, async () => {
      const pool = await register(durability);
      assert.equal((await take("t1", 10)).kind, "granted");
      const held = await remove();
      assert.deepEqual(held, {
        kind: "inUse",
        by: durability === "LEDGER" ? "1 token that is held" : "tokens that are held",
      });
      const { quota, version } = (await at.manager.getPool(POOL)) ?? {};
      assert.deepEqual({ quota, version }, { quota: pool.quota, version: pool.version });
      const waiting = new AbortController();
      const asked = { allocations: [allocation({ token: "t2" })], holder: "flyte", priority: 0 };
      const steps = at.manager.wait(asked, waiting.signal);
      assert.equal((await steps.next()).value?.kind, "waiting");
      assert.deepEqual(await remove(), { kind: "inUse", by: "1 request that waits for it" });
      waiting.abort();
      await steps.return(undefined);
      assert.equal(await give("t1"), "released");
      assert.equal((await remove()).kind, "done");
    });

    test(`no token of a ${durability} pool is lost or left behind while it is deleted and made again`, async () => {
      await register(durability);
      let stopped = false;
      let granted = 0;
      const call = async (token: string) => {
        while (!stopped) {
          const { kind } = await take(token);
          if (kind === "granted") {
            granted += 1;
            assert.equal(await give(token), "released", "a granted token was lost");
          } else assert.ok(["unknownPool", "exhausted"].includes(kind), kind);
          await new Promise((resolve) => setImmediate(resolve));
        }
      };
      const calls = Array.from({ length: CALLERS }, (_, index) => call(`token-${index}`));
      const ended = Promise.all(calls);
      let deleted = 0;
      try {
        for (let round = 0; round < ROUNDS; round += 1) {
          const { kind } = await remove();
          assert.ok(kind === "done" || kind === "inUse", kind);
          if (kind === "done") deleted += 1;
          if (kind === "done") await register(durability);
        }
      } finally {
        stopped = true;
        await ended;
      }
      assert.ok(granted > 0, `${granted} grants`);
      assert.equal((await remove()).kind, "done", `after ${deleted} deletions`);
      const { counters } = await at.domain("default", durability);
      assert.deepEqual(await counters.used(), []);
      await (await at.domain()).epochs.openEpoch(5_000);
      const check = await at.manager.reconcile({ pool: null, dryRun: true, actor: "admin" });
      assert.deepEqual("differences" in check && check.differences, []);
    });
  }

  test("a pool that a queue or a cluster names, another version and an unknown pool are refused", async () => {
    const { version } = await register();
    assert.deepEqual(await remove(version + 1), { kind: "stale" });
    const refused = async (name: string) => {
      const answer = await at.manager.deletePool(name, 0, "admin");
      return answer.kind === "inUse" ? answer.by : answer.kind;
    };
    assert.equal(await refused("none"), "notFound");
    assert.equal(await refused(FLAVOR), "queue research, which has a quota for it");
    const [queue] = await store.admin.listQueues();
    assert.ok(queue !== undefined);
    assert.equal((await store.admin.updateQueue({ ...queue, quotas: [], version: 0 })).kind, "done");
    assert.equal(await refused(FLAVOR), "cluster east, which has it as a flavor");
  });

  test("a cluster that is registered while its flavor's pool is deleted has the pool in the end", async () => {
    const flavors = [{ name: "gpu/new", resource: "nvidia.com/gpu", nodeLabels: {} }];
    for (let round = 0; round < 10; round += 1) {
      const cluster = { name: `c${round}`, labels: {}, flavors, credentials: {} };
      const [made] = await Promise.all([
        store.clusters.register(cluster),
        store.pools.remove("gpu/new", { version: 0, actor: "admin" }),
      ]);
      assert.equal(made.kind, "done");
      assert.notEqual(await store.pools.get("gpu/new"), null);
      assert.equal((await store.clusters.remove(cluster.name, false)).kind, "done");
    }
  });
});
