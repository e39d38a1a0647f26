import assert from "node:assert/strict";
import { test } from "node:test";
import { type Cluster, connectCluster, type KubeClusterOptions } from "../../src/adapters/cluster/cluster.ts";
import { createClusters } from "../../src/adapters/cluster/clusters.ts";
import { LABEL } from "../../src/core/job/labels.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { type BookedReport, CapacityBook } from "./capacity-book.ts";
import {
  clientOf,
  clock,
  configMap,
  create,
  deadServer,
  fastClock,
  gpuNodes,
  INSTALLATION,
  kubeconfigOf,
  remove,
  seededRandom,
  startProxy,
  startSim,
  type Treatment,
  until,
} from "./harness.ts";
import { ownSim } from "./own-sim.ts";

const { sim, direct } = await ownSim(gpuNodes(2));

/** A connected cluster, and everything that it reports. */
function connect(options: Partial<KubeClusterOptions> = {}) {
  const changed: string[] = [];
  const book = new CapacityBook();
  const errors: unknown[] = [];
  const cluster: Cluster = connectCluster({
    name: "one",
    kubeconfig: sim.kubeconfig(),
    installation: INSTALLATION,
    clock,
    random: seededRandom(3),
    createNamespaces: false,
    onJobChanged: (jobUid) => changed.push(jobUid),
    onCapacity: (report) => book.take(report),
    onError: (error) => errors.push(error),
    ...options,
  });
  return { cluster, changed, book, reports: book.reports, errors };
}

function labelsOf(jobUid: string, installation = INSTALLATION): Record<string, string> {
  return {
    [LABEL.jobUid]: jobUid,
    [LABEL.admission]: "1",
    [LABEL.installation]: installation,
    [LABEL.replicaType]: "worker",
    [LABEL.replicaIndex]: "0",
  };
}

function pod(name: string, labels: Record<string, string>, gpus: number): JsonObject {
  const resources = { limits: { "nvidia.com/gpu": String(gpus) } };
  const annotations = { "sim.gangway.dev/run": "forever" };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels, annotations },
    spec: {
      containers: [{ name: "main", image: "busybox", env: [{ name: "BIG", value: "x".repeat(999) }], resources }],
    },
  };
}

const gpusFree = (report: BookedReport | undefined) =>
  (report?.capacity?.nodes ?? []).reduce((sum, { free }) => sum + (free["nvidia.com/gpu"] ?? 0) / 1000, 0);

test("a job is observed by its uid and installation, and every change of it is reported", async () => {
  const { cluster, changed } = connect();
  cluster.start();
  await until(() => cluster.synced(), "synced");
  await create(direct, "configmaps", configMap("a-anchor", labelsOf("job-a")));
  await create(direct, "pods", pod("a-pod", labelsOf("job-a"), 0));
  await create(direct, "pods", pod("not-ours", labelsOf("job-a", "another"), 0));
  await until(() => cluster.observe("job-a").pods.length === 1, "pod seen");
  await until(() => cluster.observe("job-a").configMaps.length === 1, "anchor seen");
  const seen = cluster.observe("job-a");
  assert.deepEqual(
    seen.pods.map(({ name, jobUid, admission, role, index }) => ({ name, jobUid, admission, role, index })),
    [{ name: "a-pod", jobUid: "job-a", admission: 1, role: "worker", index: 0 }],
  );
  assert.equal(seen.configMaps[0]?.name, "a-anchor");
  assert.equal(cluster.namespaceOf("job-a"), "default");
  assert.ok(changed.includes("job-a"));
  assert.deepEqual([...new Set(cluster.jobUids())], ["job-a"]);
  await until(() => cluster.observe("job-a").pods[0]?.ready === true, "ready is seen");
  for (const [resource, name] of [
    ["pods", "a-pod"],
    ["pods", "not-ours"],
    ["configmaps", "a-anchor"],
  ] as const) {
    await remove(direct, resource, name);
  }
  await until(() => [...cluster.jobUids()].length === 0, "all gone");
  await cluster.close();
});

test("the last state is kept of a pod that the platform has removed, but not of other pods", async () => {
  const { cluster } = connect();
  cluster.start();
  const seen = () => cluster.observe("taken");
  for (const name of ["taken-0", "deleted-0"]) await create(direct, "pods", pod(name, labelsOf("taken"), 1));
  await until(() => seen().pods.filter(({ phase }) => phase === "Running").length === 2, "both run");
  const disrupted = { phase: "Failed", conditions: [{ type: "DisruptionTarget", status: "True" }] };
  const path = "/api/v1/namespaces/default/pods/taken-0/status";
  await direct.request({ method: "PATCH", path, body: { status: disrupted } });
  for (const name of ["taken-0", "deleted-0"]) await remove(direct, "pods", name);
  await until(() => seen().pods.length === 0, "both are gone");
  assert.deepEqual(
    seen().lost?.map(({ name, deleting }) => [name, deleting]),
    [["taken-0", true]],
  );
  assert.equal(cluster.observe("another").lost, undefined);
  await cluster.close();
});

test("capacity follows our pods and foreign pods, and a report that was not taken is repeated", async () => {
  let refuse = true;
  const book = new CapacityBook();
  const { reports } = book;
  const { cluster, errors } = connect({
    onCapacity: async (report) => {
      if (refuse) {
        refuse = false;
        throw new Error("not now");
      }
      return await book.take(report);
    },
  });
  cluster.start();
  await until(() => gpusFree(reports.at(-1)) === 16, "all free");
  assert.equal(errors.length, 1);
  await create(direct, "pods", pod("b-ours", labelsOf("job-b"), 3));
  await create(direct, "pods", pod("b-strange", {}, 2));
  await until(() => gpusFree(reports.at(-1)) === 11, "both are charged");
  const capacity = reports.at(-1)?.capacity;
  assert.deepEqual(capacity?.seen, [{ jobUid: "job-b", admission: 1, role: "worker", index: 0 }]);
  await remove(direct, "pods", "b-ours");
  await remove(direct, "pods", "b-strange");
  await until(() => gpusFree(reports.at(-1)) === 16, "all free again");
  await cluster.close();
});

test("a cluster is unreachable once calls fail for the grace period, and reachable when it answers", async (t) => {
  let down = false;
  const proxy = await startProxy(sim.url, () => (down ? "cut" : "pass"));
  t.after(() => proxy.close());
  const { cluster, reports } = connect({ kubeconfig: proxy.kubeconfig, unreachableGraceMs: 300 });
  cluster.start();
  await until(() => reports.at(-1)?.reachable === true, "reachable");
  down = true;
  proxy.cutAll();
  await until(() => reports.at(-1)?.reachable === false, "unreachable");
  assert.ok(reports.at(-1)?.capacity !== null, "the report has the capacity that was seen last");
  down = false;
  await until(() => reports.at(-1)?.reachable === true, "reachable again");
  await cluster.close();
});

const ways: Record<string, { readonly treat: Treatment; readonly isUsable: boolean }> = {
  "whose packets vanish": { treat: "hang", isUsable: true },
  "whose server is not ready": { treat: { status: 503 }, isUsable: true },
  "that does not accept the credentials any more": { treat: { status: 401 }, isUsable: false },
};
for (const [name, { treat, isUsable }] of Object.entries(ways)) {
  test(`the probe notices a cluster ${name}, though open watches say nothing`, async (t) => {
    let turned = false;
    const proxy = await startProxy(sim.url, () => (turned ? treat : "pass"));
    t.after(() => proxy.close());
    // No limit of silence ends a watch that was opened while packets vanished.
    const silenceMsMax = 86_400_000;
    const { cluster, reports } = connect({ kubeconfig: proxy.kubeconfig, clock: fastClock(10), silenceMsMax });
    t.after(() => cluster.close());
    cluster.start();
    await until(() => reports.at(-1)?.reachable === true, "reachable");
    turned = true;
    await until(() => reports.at(-1)?.reachable === false, "it is reported");
    const health = cluster.health();
    assert.equal(health.kind, isUsable ? "unreachable" : "unusable");
    assert.equal(health.kind === "unusable" ? health.why : null, reports.at(-1)?.unusable);
    turned = false;
    await create(direct, "configmaps", configMap("meanwhile-anchor", labelsOf("meanwhile")));
    t.after(() => remove(direct, "configmaps", "meanwhile-anchor"));
    await until(() => reports.at(-1)?.reachable === true, "reachable again");
    await until(() => cluster.observe("meanwhile").configMaps.length === 1, "its watches go on");
    assert.deepEqual(cluster.health(), { kind: "active" });
  });
}

test("a cluster that never answered is reported as unreachable, without capacity", async () => {
  const { cluster, reports } = connect({ kubeconfig: kubeconfigOf(deadServer()), unreachableGraceMs: 200 });
  cluster.start();
  await until(() => reports.length > 0, "a report is made");
  assert.deepEqual(reports[0], { capacity: null, reachable: false, unusable: null });
  assert.equal(cluster.lastHeardMs(), null);
  await cluster.close();
});

test("several clusters are observed together, but only after each named cluster has been listed", async (t) => {
  const second = await startSim(gpuNodes(1), 9);
  t.after(() => second.close());
  const here = connect();
  const there = connect({ name: "two", kubeconfig: second.kubeconfig() });
  const clusters = createClusters([here.cluster, there.cluster]);
  here.cluster.start();
  await until(() => here.cluster.synced(), "the first is synced");
  assert.equal(clusters.observe({ uid: "job-c", clusters: ["one", "two"] }), null);
  assert.equal(clusters.observe({ uid: "job-c", clusters: ["three"] }), null);
  assert.deepEqual(
    clusters.observe({ uid: "job-c", clusters: ["one"] })?.map(({ cluster }) => cluster),
    ["one"],
  );
  there.cluster.start();
  await until(() => there.cluster.synced(), "the second is synced");
  const elsewhere = clientOf(second.kubeconfig());
  await create(elsewhere, "pods", pod("c-pod", labelsOf("job-c"), 0));
  await until(() => clusters.seenJobs().includes("job-c"), "seen");
  assert.deepEqual(
    clusters.observe({ uid: "job-c", clusters: ["one"] })?.map(({ cluster }) => cluster),
    ["one", "two"],
  );
  const nowhere = { cluster: "three", namespace: "default", kind: "deletePod", name: "x", uid: "y" } as const;
  const outcome = await clusters.act(nowhere, new AbortController().signal);
  assert.equal(outcome.kind === "failed" && outcome.reason, "UnknownCluster");
  await elsewhere.close();
  await clusters.close();
});
