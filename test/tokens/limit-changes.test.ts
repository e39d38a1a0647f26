import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { inProcessCounters } from "../../src/adapters/counters/in-process/in-process-counters.ts";
import { createClusterAdmin } from "../../src/api/cluster/cluster-admin.ts";
import { createKeyAdmin } from "../../src/api/cluster/key-admin.ts";
import { onlyDefault } from "../../src/core/admin/credential-keys.ts";
import { ClusterService } from "../../src/gen/gangway/v1/cluster_service_pb.ts";
import { QueueService } from "../../src/gen/gangway/v1/queue_service_pb.ts";
import { ResourceManager } from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { startFixture } from "../api/fixture.ts";
import { freshStore, type TestStore } from "../store/db.ts";
import { openMemoryDb } from "../support/databases.ts";
import { NO_WISHES, startManager } from "./manager.ts";

type Served = Awaited<ReturnType<typeof serve>>;

/** The API on real tokens and a real store. Counts each push to the counters and each wake of the planner. */
async function serve(t: TestContext) {
  const db = await openMemoryDb();
  t.after(() => db.close());
  const { store } = await freshStore(db);
  const seen = { pushes: 0, wakes: 0 };
  const counters = inProcessCounters();
  const counted = {
    ...counters,
    setLimits: (...of: Parameters<typeof counters.setLimits>) => {
      seen.pushes += 1;
      return counters.setLimits(...of);
    },
  };
  const tokens = startManager({
    ledgerOf: store.ledgerOf,
    store: store.pools,
    clock: systemClock(),
    countersOf: async () => counted,
    wakePlanner: () => {
      seen.wakes += 1;
    },
  });
  t.after(() => tokens.close());
  await (await tokens.domain()).epochs.openEpoch(5_000);
  const { manager, limitsChanged } = tokens;
  const ports = { admin: store.admin, resources: manager, clusters: clusterAdmin(store), limitsChanged };
  const api = await startFixture(t, {
    ...ports,
    wakePlanner: () => {
      seen.wakes += 1;
    },
  });
  return { ...api, seen, manager, counted };
}

function clusterAdmin(store: TestStore) {
  return createClusterAdmin({
    table: { ...store.clusters, getCluster: store.admin.getCluster },
    refresh: async () => undefined,
    allowLocal: false,
    readFile: async () => null,
    readSecret: async () => "",
    pickContext: async (kubeconfig) => ({ kind: "ok", kubeconfig }),
    seal: async () => ({}),
    open: async () => "",
    check: async () => ({ kubernetesVersion: "", clockSkewMs: null, uid: null, findings: [] }),
    simulated: () => null,
    keys: createKeyAdmin({ keys: () => onlyDefault(null), table: store.clusters, loadReseal: async () => () => ({}) }),
  });
}

const quotas = (nominal: bigint) => [{ flavor: "gpu/h100", resource: "nvidia.com/gpu", nominal }];
const cluster = (flavor: string) => ({
  cluster: { name: "north", flavors: [{ name: flavor, resource: "nvidia.com/gpu", nodeLabels: { gpu: "x" } }] },
  credentials: { kubeconfig: { case: "text" as const, value: "kind: Config" } },
});

/** Each step is one change of limits. */
const changes: Record<string, (served: Served) => Promise<{ readonly error: unknown }>> = {
  "a queue is created": ({ call }) =>
    call(QueueService.method.createQueue, { queue: { name: "q", quotas: quotas(4n) } }),
  "a queue is updated": ({ call }) =>
    call(QueueService.method.updateQueue, { queue: { name: "q", quotas: quotas(5n) } }),
  "a queue is deleted": ({ call }) => call(QueueService.method.deleteQueue, { name: "q" }),
  "a pool is registered": ({ call }) =>
    call(ResourceManager.method.registerResourceQuota, { resourceNamespace: "ex:pool", quota: 4n }),
  "a plugin registers a pool": async ({ manager }) => {
    const { kind } = await manager.registerPool({ name: "ex:plugin", ...NO_WISHES, quota: 2 }, 0, "plugin/test");
    return { error: kind === "done" ? null : kind };
  },
  "a cluster with a new flavor is registered": ({ call }) =>
    call(ClusterService.method.registerCluster, cluster("gpu/b200")),
  "a cluster gets a new flavor": ({ call }) => call(ClusterService.method.updateCluster, cluster("gpu/b300")),
};

test("after each change of limits, the counters get them once and the planner is woken once", async (t) => {
  const served = await serve(t);
  for (const [name, change] of Object.entries(changes)) {
    const before = { ...served.seen };
    const { error } = await change(served);
    assert.equal(error, null, name);
    const more = { pushes: served.seen.pushes - before.pushes, wakes: served.seen.wakes - before.wakes };
    assert.deepEqual(more, { pushes: 1, wakes: 1 }, name);
  }
});

test("a refused change reaches neither the counters nor the planner", async (t) => {
  const { call, seen, manager } = await serve(t);
  const twice = { queue: { name: "research", quotas: quotas(4n) } };
  assert.notEqual((await call(QueueService.method.createQueue, twice)).error, null);
  const stale = await manager.registerPool({ name: "ex:none", ...NO_WISHES, quota: 1 }, 7, "admin");
  assert.equal(stale.kind, "notFound");
  assert.notEqual((await call(ClusterService.method.deleteCluster, { name: "none" })).error, null);
  assert.deepEqual(seen, { pushes: 0, wakes: 0 });
});

test("the planner is woken even if the counters do not answer", async (t) => {
  const { call, seen, counted } = await serve(t);
  counted.setLimits = () => Promise.reject(new Error("the counters are unavailable"));
  const { error } = await call(QueueService.method.createQueue, { queue: { name: "q", quotas: quotas(4n) } });
  assert.deepEqual([error, seen.wakes], [null, 1]);
});
