/** What a caller hears of a cluster that it may not see, in words about one that it may. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toJsonString } from "@bufbuild/protobuf";
import type { ClusterAdmin } from "../../src/api/ports.ts";
import { CallError } from "../../src/cli/rpc/call-error.ts";
import { connect } from "../../src/cli/rpc/client.ts";
import type { NewBinding } from "../../src/core/access/binding.ts";
import { describeUidRefusal } from "../../src/core/admin/cluster.ts";
import { ClusterService } from "../../src/gen/gangway/v1/cluster_service_pb.ts";
import { JobService, SimulateJobResponseSchema, Verdict } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { amounts, cluster, node, nodes } from "../core/plan/plan-world.ts";
import { knownCallers } from "../support/known-callers.ts";
import { memoryAccess } from "../support/memory-access.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";
import { MemoryStore, queueRecord } from "./memory-store.ts";

const SAME = { kind: "sameCluster", uid: "u-1", as: "hub" } as const;
const PROBLEM = `cluster east ${describeUidRefusal(SAME)}`;
const finding = { severity: "ERROR", code: "SameCluster", message: PROBLEM } as const;

test("words about a cluster name no other cluster to who may not see that one", async (t) => {
  const known = await knownCallers(t);
  const access = memoryAccess({ enforces: true });
  const clusters: ClusterAdmin = {
    ...new MemoryStore().clusterAdmin,
    problemOf: () => PROBLEM,
    check: async () => ({ kubernetesVersion: "", clockSkewMs: null, uid: "u-1", findings: [finding] }),
    update: async () => SAME,
    remove: async () => ({ kind: "inUse", by: "cluster hub, whose kubeconfig is in a Secret there; update it" }),
  };
  const { authenticate, robots } = known;
  const { authorization, admin } = access;
  const { api, store } = await startFixture(t, { authenticate, robots, authorization, access: admin, clusters });
  const sent = { kubeconfig: { kind: "text", text: "kind: Config" }, context: "" } as const;
  await store.clusterAdmin.register({ name: "east", labels: {}, flavors: [] }, sent);
  const heardBy = async (name: string, ...seen: readonly string[]) => {
    const { subject, token } = await known.caller("oidc", name);
    const to = { kind: "subject", name: subject } as const;
    await access.bind({ to, role: "cluster-admin", scope: { kind: "cluster", name: "east" } });
    for (const one of seen) await access.bind({ to, role: "viewer", scope: { kind: "cluster", name: one } });
    const client = connect(api.address, new AbortController().signal, { tls: null, token: async () => token });
    t.after(() => client.close());
    const { getCluster, listClusters, checkCluster, updateCluster, deleteCluster } = ClusterService.method;
    const refused = async (call: Promise<unknown>) => {
      const error = await call.catch((caught: unknown) => caught);
      return error instanceof CallError ? error.details : assert.fail(String(error));
    };
    return [
      (await client.call(getCluster, { name: "east" })).cluster?.problem ?? "",
      (await client.call(listClusters, {})).clusters.find((one) => one.name === "east")?.problem ?? "",
      (await client.call(checkCluster, { name: "east" })).check?.findings[0]?.message ?? "",
      await refused(client.call(updateCluster, { cluster: { name: "east" } })),
      await refused(client.call(deleteCluster, { name: "east" })),
    ];
  };
  for (const words of await heardBy("ann", "hub")) assert.match(words, /hub/);
  for (const words of await heardBy("bob")) {
    assert.match(words, /another cluster/);
    assert.doesNotMatch(words, /hub/);
  }
});

test("a simulation names no cluster and no pool that its caller may not see", async (t) => {
  const known = await knownCallers(t);
  const access = memoryAccess({ enforces: true });
  const { authenticate, robots } = known;
  const { authorization, admin } = access;
  const { api, store } = await startFixture(t, { authenticate, robots, authorization, access: admin });
  const quotas = [{ flavor: "gpu/h100", resource: "nvidia.com/gpu", nominal: 32 }];
  store.queues.set("default", { ...queueRecord("default"), quotas });
  const full = [node("w-0", "h100", { free: amounts(0) })];
  const facts = {
    uid: null,
    simulated: false,
    observedMs: 1,
    version: 1,
    createTimeMs: 1,
    gangScheduler: "none",
  } as const;
  for (const one of [cluster("east", { nodes: nodes(2, "h100") }), cluster("west", { nodes: full })]) {
    store.clusters.set(one.name, { ...one, ...facts });
  }
  const simulated = async (name: string, replicas: number, ...seen: readonly NewBinding["scope"][]) => {
    const { subject, token } = await known.caller("oidc", name);
    const to = { kind: "subject", name: subject } as const;
    await access.bind({ to, role: "submitter", scope: { kind: "namespace", name: "default" } });
    await access.bind({ to, role: "submitter", scope: { kind: "queue", name: "default" } });
    for (const scope of seen) await access.bind({ to, role: "viewer", scope });
    const client = connect(api.address, new AbortController().signal, { tls: null, token: async () => token });
    t.after(() => client.close());
    const resources = { limits: { "nvidia.com/gpu": 8 } };
    const pod = { spec: { containers: [{ name: "pytorch", image: "i", resources }] } };
    const job = pytorchJob("gpt", { replicaSpecs: { Worker: { replicas, template: pod } } });
    const answer = await client.call(JobService.method.simulateJob, { job });
    return { answer, text: toJsonString(SimulateJobResponseSchema, answer) };
  };
  const east = { kind: "cluster", name: "east" } as const;
  const pool = { kind: "pool", name: "gpu/h100" } as const;
  for (const [replicas, verdict] of [
    [2, Verdict.FITS_NOW],
    [5, Verdict.NEVER],
  ] as const) {
    const blind = await simulated(`blind-${replicas}`, replicas);
    assert.equal(blind.answer.verdict, verdict);
    assert.doesNotMatch(blind.text, /east|west|h100|w-0/);
    assert.deepEqual(blind.answer.clusters, []);
    const half = await simulated(`half-${replicas}`, replicas, east);
    assert.doesNotMatch(half.text, /west|gpu\/h100/);
    assert.match(half.text, /east/);
    const pools = await simulated(`pools-${replicas}`, replicas, pool);
    assert.doesNotMatch(pools.text, /east|west/);
    assert.match(pools.text, /gpu\/h100/);
    const all = await simulated(`all-${replicas}`, replicas, { kind: "installation", name: "" });
    assert.match(all.text, /east/);
    assert.match(all.text, /gpu\/h100/);
  }
});
