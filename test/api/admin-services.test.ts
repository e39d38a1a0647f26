import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterService } from "../../src/gen/gangway/v1/cluster_service_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { NamespaceService, PodSecurityLevel } from "../../src/gen/gangway/v1/namespace_service_pb.ts";
import { QueueService, QueueStrategy } from "../../src/gen/gangway/v1/queue_service_pb.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

const quota = { flavor: "gpu/h100", resource: "nvidia.com/gpu", nominal: 16n };
const queues = QueueService.method;
const namespaces = NamespaceService.method;
const clusters = ClusterService.method;

test("a queue is created, read, updated from the version that was read, and deleted", async (t) => {
  const { call, woken } = await startFixture(t);
  const created = await call(queues.createQueue, { queue: { name: "team-a", quotas: [quota] } });
  assert.equal(created.ok?.queue?.strategy, QueueStrategy.BEST_EFFORT_FIFO);
  assert.deepEqual([created.ok?.queue?.resourceVersion, woken.planner], ["1", 1]);
  const strategy = QueueStrategy.STRICT_FIFO;
  const updated = await call(queues.updateQueue, {
    queue: { name: "team-a", strategy, quotas: [{ ...quota, nominal: 8n }], resourceVersion: "1" },
  });
  assert.deepEqual([updated.ok?.queue?.resourceVersion, updated.ok?.queue?.quotas[0]?.nominal], ["2", 8n]);
  assert.equal(woken.planner, 2);
  const stale = await call(queues.updateQueue, { queue: { name: "team-a", resourceVersion: "1" } });
  assert.deepEqual([stale.error?.code, stale.error?.reason], ["ABORTED", "STALE_RESOURCE_VERSION"]);
  const names = (await call(queues.listQueues, {})).ok?.queues.map(({ name }) => name);
  assert.deepEqual(names, ["default", "team-a"]);
  assert.equal((await call(queues.deleteQueue, { name: "team-a" })).error, null);
  const gone = await call(queues.getQueue, { name: "team-a" });
  assert.deepEqual(
    [gone.error?.code, gone.error?.reason, gone.error?.resource],
    ["NOT_FOUND", "QUEUE_NOT_FOUND", "team-a"],
  );
});

test("a queue that exists, is in use, or names a flavor twice is refused with the exact reason", async (t) => {
  const { call, store } = await startFixture(t);
  const exists = await call(queues.createQueue, { queue: { name: "default" } });
  assert.deepEqual([exists.error?.code, exists.error?.reason], ["ALREADY_EXISTS", "QUEUE_EXISTS"]);
  await call(JobService.method.createJob, { job: pytorchJob() });
  const used = await call(queues.deleteQueue, { name: "default" });
  assert.deepEqual([used.error?.code, used.error?.precondition], ["FAILED_PRECONDITION", "QUEUE_IN_USE"]);
  assert.match(used.error!.message, /job default\/mnist/);
  const twice = await call(queues.createQueue, { queue: { name: "x", quotas: [quota, quota] } });
  assert.deepEqual(
    twice.error?.fields.map(({ field }) => field),
    ["queue.quotas[1].flavor"],
  );
  const wrong = await call(queues.createQueue, {
    queue: { name: "No", strategy: 9 as never, quotas: [{ flavor: "GPU", resource: "", nominal: -1n }] },
  });
  assert.deepEqual(wrong.error?.fields.map(({ field }) => field).sort(), [
    "queue.name",
    "queue.quotas[0].flavor",
    "queue.quotas[0].nominal",
    "queue.quotas[0].resource",
    "queue.strategy",
  ]);
  assert.deepEqual([...store.queues.keys()], ["default"]);
});

test("a queue is below its parent, and its borrowing and lending limits are shown", async (t) => {
  const { call, store } = await startFixture(t);
  const shares = { ...quota, borrowingLimit: 4n, lendingLimit: 0n };
  await call(queues.createQueue, { queue: { name: "all" } });
  const made = await call(queues.createQueue, { queue: { name: "team-a", parent: "all", quotas: [shares] } });
  assert.equal(made.ok?.queue?.parent, "all");
  const [kept] = made.ok?.queue?.quotas ?? [];
  assert.deepEqual([kept?.borrowingLimit, kept?.lendingLimit], [4n, 0n]);
  const cases = [
    [{ name: "team-b", parent: "nowhere" }, "queue.parent", /queue nowhere does not exist/],
    [{ name: "team-b", parent: "team-b" }, "queue.parent", /team-b is below team-b/],
    [{ name: "team-b", quotas: [shares] }, "queue.quotas[0].borrowing_limit", /without a parent/],
    [{ name: "team-b", quotas: [{ ...quota, lendingLimit: 3n }] }, "queue.quotas[0].lending_limit", /without a parent/],
    [
      { name: "team-b", parent: "all", quotas: [{ ...quota, lendingLimit: -1n }] },
      "queue.quotas[0].lending_limit",
      /0/,
    ],
  ] as const;
  for (const [sent, field, words] of cases) {
    const queue = { ...sent, quotas: "quotas" in sent ? [...sent.quotas] : [] };
    const { error } = await call(queues.createQueue, { queue });
    assert.deepEqual([error?.code, error?.fields[0]?.field], ["INVALID_ARGUMENT", field]);
    assert.match(error!.message, words);
  }
  const turned = await call(queues.updateQueue, { queue: { name: "all", parent: "team-a" } });
  assert.match(turned.error!.message, /all is below team-a is below all/);
  const alone = await call(queues.updateQueue, { queue: { name: "team-a", quotas: [shares] } });
  assert.equal(alone.error?.fields.length, 2);
  const above = await call(queues.deleteQueue, { name: "all" });
  assert.deepEqual([above.error?.precondition, store.queues.size], ["QUEUE_IN_USE", 3]);
  assert.match(above.error!.message, /team-a, which is below it/);
  const moved = await call(queues.updateQueue, { queue: { name: "team-a", quotas: [quota] } });
  assert.equal(moved.ok?.queue?.parent, "");
  assert.equal((await call(queues.deleteQueue, { name: "all" })).error, null);
});

test("a pod policy is shown in its normal form, kept by updates without one, reset by an empty one", async (t) => {
  const { call } = await startFixture(t);
  const named = { name: "research" };
  const podPolicy = { allow: ["host-path=//dev/shm/", "host-network"], images: { values: ["acme.com/*"] } };
  const created = await call(namespaces.createNamespace, { namespace: { ...named, podPolicy } });
  const kept = ["host-path=/dev/shm", "host-network"];
  assert.deepEqual(created.ok?.namespace?.podPolicy?.allow, kept);
  assert.deepEqual(created.ok?.namespace?.podPolicy?.level, PodSecurityLevel.UNSPECIFIED);
  const updated = await call(namespaces.updateNamespace, { namespace: { ...named, project: "vision" } });
  const { podPolicy: after, effectivePodPolicy } = updated.ok!.namespace!;
  assert.deepEqual([after?.allow, after?.images?.values, after?.tolerations], [kept, ["acme.com/*"], undefined]);
  assert.deepEqual([effectivePodPolicy?.level, effectivePodPolicy?.allow], [PodSecurityLevel.BASELINE, kept]);
  const reset = await call(namespaces.updateNamespace, { namespace: { ...named, podPolicy: {} } });
  assert.deepEqual([reset.ok?.namespace?.podPolicy?.allow, reset.ok?.namespace?.podPolicy?.images], [[], undefined]);
});

test("every wrong entry of a pod policy is refused at its field, and changes nothing", async (t) => {
  const { call } = await startFixture(t);
  const podPolicy = {
    allow: ["host-ipc", "host-path=/a/../b", "sudo"],
    images: { values: ["Not An Image"] },
    tolerations: { values: ["gpu", "gpu:Never"] },
    level: 9 as PodSecurityLevel,
  };
  const many = { allow: Array.from({ length: 201 }, (_, at) => `host-port=${at + 1}`) };
  const fieldsOf = async (policy: object) =>
    (await call(namespaces.createNamespace, { namespace: { name: "research", podPolicy: policy } })).error?.fields.map(
      ({ field }) => field,
    );
  assert.deepEqual(await fieldsOf(podPolicy), ["namespace.pod_policy.level"]);
  assert.deepEqual(await fieldsOf({ ...podPolicy, level: PodSecurityLevel.BASELINE }), [
    "namespace.pod_policy.allow[1]",
    "namespace.pod_policy.allow[2]",
    "namespace.pod_policy.images.values[0]",
    "namespace.pod_policy.tolerations.values[1]",
  ]);
  assert.deepEqual(await fieldsOf(many), ["namespace.pod_policy.allow"]);
  assert.equal((await call(namespaces.getNamespace, { name: "research" })).error?.reason, "NAMESPACE_NOT_FOUND");
});

test("a namespace gives its jobs a project and a queue", async (t) => {
  const { call, store } = await startFixture(t);
  await call(queues.createQueue, { queue: { name: "team-a" } });
  const created = await call(namespaces.createNamespace, {
    namespace: { name: "research", project: "vision", defaultQueue: "team-a" },
  });
  assert.equal(created.ok?.namespace?.project, "vision");
  const job = { ...pytorchJob(), metadata: { name: "mnist", namespace: "research" } };
  const made = await call(JobService.method.createJob, { job });
  assert.equal(made.ok?.job?.metadata?.project, "vision");
  assert.equal(made.ok?.job?.spec?.runPolicy?.schedulingPolicy?.queue, "team-a");
  const updated = await call(namespaces.updateNamespace, { namespace: { name: "research", resourceVersion: "1" } });
  assert.deepEqual([updated.ok?.namespace?.project, updated.ok?.namespace?.defaultQueue], ["default", "default"]);
  const wrong = await call(namespaces.updateNamespace, { namespace: { name: "research", defaultQueue: "nope" } });
  assert.equal(wrong.error?.fields[0]?.field, "namespace.default_queue");
  assert.equal((await call(namespaces.listNamespaces, {})).ok?.namespaces.length, 2);
  const inUse = await call(namespaces.deleteNamespace, { name: "research" });
  assert.deepEqual([inUse.error?.code, inUse.error?.precondition], ["FAILED_PRECONDITION", "NAMESPACE_IN_USE"]);
  store.jobs.clear();
  assert.equal((await call(namespaces.deleteNamespace, { name: "research" })).error, null);
  assert.equal((await call(namespaces.getNamespace, { name: "research" })).error?.reason, "NAMESPACE_NOT_FOUND");
});

test("a cluster shows allocatable and free resources of its schedulable nodes, as Kubernetes quantities", async (t) => {
  const { call, store, woken } = await startFixture(t);
  const node = {
    name: "n1",
    labels: { "gpu-model": "h100" },
    taints: [{ key: "gpu", value: "yes", effect: "NoSchedule" }],
    unschedulable: false,
    allocatable: { cpu: 64_000, memory: 2 ** 36 * 1000, "nvidia.com/gpu": 8000 },
    free: { cpu: 1500, memory: -5, "nvidia.com/gpu": 8000 },
  };
  const cordonedNode = { ...node, name: "n2", unschedulable: true };
  const flavors = [{ name: "gpu/h100", resource: "nvidia.com/gpu", nodeLabels: { "gpu-model": "h100" } }];
  store.clusters.set("west", {
    name: "west",
    labels: { region: "west" },
    flavors,
    gangScheduler: "none",
    cordoned: false,
    simulated: true,
    reachable: true,
    observedMs: 3000,
    version: 4,
    createTimeMs: 1000,
    uid: null,
    capacity: { nodes: [node, cordonedNode, { ...node, name: "n3" }], seen: [], unbound: [] },
  });
  const { ok } = await call(clusters.getCluster, { name: "west" });
  assert.deepEqual(ok?.cluster?.allocatable, { cpu: "128", memory: "128Gi", "nvidia.com/gpu": "16" });
  assert.deepEqual(ok?.cluster?.free, { cpu: "3", memory: "0", "nvidia.com/gpu": "16" });
  assert.deepEqual([ok?.cluster?.nodes, ok?.cluster?.reachable, ok?.cluster?.observeTime?.seconds], [3, true, 3n]);
  const capacity = await call(clusters.getCapacity, { name: "west" });
  assert.deepEqual(capacity.ok?.nodes[0]?.taints, ["gpu=yes:NoSchedule"]);
  assert.deepEqual(
    capacity.ok?.nodes.map(({ free }) => free["cpu"]),
    ["1500m", "1500m", "1500m"],
  );
  assert.equal((await call(clusters.cordonCluster, { name: "west" })).ok?.cluster?.cordoned, true);
  assert.equal((await call(clusters.uncordonCluster, { name: "west" })).ok?.cluster?.cordoned, false);
  assert.equal(woken.planner, 2);
  assert.equal((await call(clusters.cordonCluster, { name: "east" })).error?.resource, "east");
  assert.equal((await call(clusters.listClusters, {})).ok?.clusters.length, 1);
});
