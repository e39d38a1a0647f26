import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, type TestContext, test } from "node:test";
import { checkCluster } from "../../src/adapters/cluster/check-cluster.ts";
import { nodeFindings } from "../../src/adapters/cluster/check-nodes.ts";
import { connectCluster } from "../../src/adapters/cluster/cluster.ts";
import { createClusters } from "../../src/adapters/cluster/clusters.ts";
import { openCredentials, resealCredentials, sealKubeconfig } from "../../src/adapters/cluster/credentials.ts";
import type { ClusterHealth } from "../../src/adapters/cluster/health.ts";
import { PERMISSIONS } from "../../src/adapters/cluster/permissions.ts";
import { ClusterRegistry, type RegisteredCluster } from "../../src/adapters/cluster/registry.ts";
import type { SimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import { onlyDefault } from "../../src/core/admin/credential-keys.ts";
import { gang } from "./gang.ts";
import {
  clientOf,
  clock,
  deadServer,
  fastClock,
  gpuNodes,
  INSTALLATION,
  kubeconfigOf,
  seededRandom,
  startProxy,
  startSim,
  until,
} from "./harness.ts";

let sim: SimCluster;
const signal = new AbortController().signal;

before(async () => {
  sim = await startSim(gpuNodes(2));
});

after(() => sim.close());

/** A registry that runs until the test ends, with a table that the test writes. */
function follow(t: TestContext) {
  const table = {
    registered: [] as RegisteredCluster[],
    forgotten: [] as string[],
    lost: new Map<string, { readonly fence: string; readonly silenceMs: number; readonly sinceMs: number }>(),
    policies: new Map<string, "WAIT" | "MOVE">(),
    returning: [] as string[],
    silent: [] as string[],
    unadopted: [] as string[],
  };
  const answered: string[] = [];
  const losses: (readonly string[])[] = [];
  const changed: string[] = [];
  const errors: string[] = [];
  const sweeps = { names: [] as string[], failing: false };
  let connections = 0;
  const time = { passedMs: 0 };
  const registry = new ClusterRegistry({
    clock: { ...clock, monotonicMs: () => clock.monotonicMs() + time.passedMs },
    listens: true,
    list: async () => table,
    async connect({ name, credentials }) {
      if (credentials["broken"] === true) throw new Error("does not open");
      connections += 1;
      return connectCluster({
        name,
        kubeconfig: sim.kubeconfig(),
        installation: INSTALLATION,
        clock,
        random: seededRandom(5),
        createNamespaces: false,
        onJobChanged: () => undefined,
        onCapacity: async () => null,
        onError: () => undefined,
      });
    },
    onJobChanged: (uid) => changed.push(uid),
    onLossChanged: async (names) => void losses.push(names),
    onReturning: async ({ name }) => void answered.push(`returning ${name}`),
    onAnswer: async ({ name }) => void answered.push(`silent ${name}`),
    onSweep: async ({ name }) => {
      if (sweeps.failing) throw new Error("the store is away");
      sweeps.names.push(name);
    },
    onError: (_error, what) => errors.push(what),
  });
  const stop = new AbortController();
  const running = registry.run(stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
  });
  return { registry, table, changed, losses, answered, errors, sweeps, time, connections: () => connections };
}

test("clusters are connected while the table names them, and reconnected when their credentials change", async (t) => {
  const { registry, table, changed, errors, connections } = follow(t);
  const one = gang();
  const job = { uid: one.uid, clusters: ["one"] };
  assert.equal(registry.clusters.observe(job), null, "not known yet");
  table.registered = [
    { name: "one", credentials: { of: "first" } },
    { name: "bad", credentials: { broken: true } },
  ];
  registry.wake();
  await until(() => registry.clusters.observe(job) !== null, "connected");
  assert.deepEqual(errors, ["cluster bad"], "a cluster that does not open is reported once, and the others open");
  assert.deepEqual(await registry.clusters.act({ ...one.createAnchor, cluster: "one" }, signal), { kind: "done" });
  await until(() => registry.clusters.seenJobs().includes(one.uid), "its anchor is seen");
  await registry.refresh();
  assert.equal(connections(), 1, "what did not change stays connected");
  table.registered = [{ name: "one", credentials: { of: "second" } }];
  await registry.refresh();
  assert.equal(connections(), 2);
  await until(() => registry.clusters.seenJobs().includes(one.uid), "seen anew");
  table.registered = [];
  changed.length = 0;
  await registry.refresh();
  assert.deepEqual(changed, [one.uid], "the jobs that were seen there are reported as changed");
  assert.equal(registry.clusters.observe(job), null, "gone from the table is not gone from the world");
  assert.equal(await registry.clusters.listJob(job, signal), null);
  table.forgotten = ["one"];
  await registry.refresh();
  const empty = [{ cluster: "one", forgotten: true, pods: [], services: [], configMaps: [] }];
  assert.deepEqual(registry.clusters.observe(job), empty, "what is forgotten is empty");
  assert.deepEqual(await registry.clusters.listJob(job, signal), empty);
});

test("of a lost cluster nothing is known, also where it was never listed; what changes is told once", async (t) => {
  const { registry, table, losses } = follow(t);
  const one = gang();
  const job = { uid: one.uid, clusters: ["one", "two"] };
  table.registered = [{ name: "one", credentials: { of: "first" } }];
  await registry.refresh();
  await until(() => registry.clusters.observe({ ...job, clusters: ["one"] }) !== null, "connected");
  assert.deepEqual(await registry.clusters.act({ ...one.createAnchor, cluster: "one" }, signal), { kind: "done" });
  await until(() => registry.clusters.seenJobs().includes(one.uid), "its anchor is seen");
  table.lost = new Map([
    ["one", { fence: "7", silenceMs: 60_000, sinceMs: 1 }],
    ["two", { fence: "9", silenceMs: 70_000, sinceMs: 2 }],
  ]);
  await registry.refresh();
  await registry.refresh();
  const nothing = { pods: [], services: [], configMaps: [] };
  const unknown = [
    { cluster: "one", loss: { fence: "7", silenceMs: 60_000, sinceMs: 1, policy: "WAIT" }, ...nothing },
    { cluster: "two", loss: { fence: "9", silenceMs: 70_000, sinceMs: 2, policy: "WAIT" }, ...nothing },
  ];
  assert.deepEqual(registry.clusters.observe(job), unknown);
  assert.deepEqual(await registry.clusters.listJob(job, signal), unknown);
  assert.deepEqual(registry.clusters.observe({ ...job, clusters: [] }), [], "what a watch has of it is old");
  table.policies = new Map([["team/a", "WAIT"]]);
  await registry.refresh();
  assert.deepEqual(losses, [["one", "two"]], "gangs that come are no news for others");
  table.policies = new Map([
    ["team/a", "MOVE"],
    ["new/a", "MOVE"],
  ]);
  await registry.refresh();
  const policyOf = (of: { readonly namespace: string; readonly queue: string }) => {
    return registry.clusters.observe({ ...job, of, clusters: ["two"] })?.[0]?.loss?.policy;
  };
  const gangs = ["a", "b"].map((queue) => ({ namespace: "team", queue }));
  assert.deepEqual(gangs.map(policyOf), ["MOVE", "WAIT"], "queues of one namespace may differ");
  table.lost = new Map([["two", { fence: "9", silenceMs: 80_000, sinceMs: 2 }]]);
  await registry.refresh();
  const both = ["one", "two"];
  assert.deepEqual(losses, [both, both, ["one"]], "gangs hear of what counts for them, too");
  assert.equal(registry.clusters.observe({ ...job, clusters: ["one"] })?.[0]?.configMaps.length, 1, "it is back");
});

test("a cluster that returns, or is silent to its observer, is told if it answers this process", async (t) => {
  const { registry, table, answered } = follow(t);
  table.registered = ["one", "two"].map((name) => ({ name, credentials: { of: "first" } }));
  table.returning = ["one", "gone"];
  table.silent = ["two", "gone"];
  await until(async () => {
    await registry.refresh();
    return answered.includes("returning one") && answered.includes("silent two");
  }, "both have been listed");
  assert.deepEqual([...new Set(answered)].sort(), ["returning one", "silent two"]);
});

test("jobs are observed once each unadopted cluster is listed, and told when it is adopted", async (t) => {
  const { registry, table, changed } = follow(t);
  const one = gang();
  const job = { uid: one.uid, clusters: ["one"] };
  table.registered = ["one", "two"].map((name) => ({ name, credentials: { of: "first" } }));
  table.unadopted = ["two"];
  await registry.refresh();
  const [, two] = registry.connected();
  assert.ok(two !== undefined);
  const nowhere = { ...job, clusters: [] };
  const observed = (health: ClusterHealth, isUnadopted: boolean) =>
    createClusters({
      connected: () => [{ ...two, synced: () => false, health: () => health }],
      isForgotten: () => false,
      isUnadopted: () => isUnadopted,
      lossOf: () => null,
    }).observe(nowhere);
  assert.equal(observed({ kind: "active" }, true), null, "it may run there");
  assert.deepEqual(observed({ kind: "active" }, false), []);
  assert.deepEqual(observed({ kind: "unreachable", forMs: 1 }, true), [], "an operator may adopt that one, too");
  await until(() => registry.clusters.observe(job) !== null, "both are listed");
  assert.deepEqual(await registry.clusters.act({ ...one.createAnchor, cluster: "one" }, signal), { kind: "done" });
  await until(() => two.observe(one.uid).configMaps.length === 1, "its anchor is seen, by both names of the server");
  const seen = registry.clusters.observe(job) ?? [];
  assert.deepEqual(
    seen.map(({ cluster, unadopted }) => [cluster, unadopted]),
    [
      ["one", undefined],
      ["two", true],
    ],
  );
  changed.length = 0;
  table.unadopted = [];
  await registry.refresh();
  assert.ok(changed.includes(one.uid));
  assert.ok((registry.clusters.observe(job) ?? []).every(({ unadopted }) => unadopted === undefined));
});

test("a cluster that answers is swept at first and every ten minutes, unless it is lost or returns", async (t) => {
  const { registry, table, sweeps, time } = follow(t);
  const names = ["one", "two", "three"];
  table.registered = names.map((name) => ({ name, credentials: { of: "first" } }));
  table.returning = ["two"];
  table.lost = new Map([["three", { fence: "7", silenceMs: 60_000, sinceMs: 1 }]]);
  sweeps.failing = true;
  await until(() => registry.connected().length === 3 && registry.clusters.synced(), "all have been listed");
  await assert.rejects(registry.refresh(), /the store is away/);
  sweeps.failing = false;
  await registry.refresh();
  await registry.refresh();
  assert.deepEqual(sweeps.names, ["one"], "once, after the first try has failed");
  time.passedMs += 599_000;
  await registry.refresh();
  assert.deepEqual(sweeps.names, ["one"]);
  table.returning = [];
  table.lost = new Map();
  time.passedMs += 2_000;
  await registry.refresh();
  assert.deepEqual(sweeps.names.slice(1).sort(), ["one", "three", "two"]);
});

test("credentials that are encrypted again keep their connection, also where their key is not known yet", async (t) => {
  const keys = { old: randomBytes(32), new: randomBytes(32) };
  const ring = (current: keyof typeof keys, ...names: readonly (keyof typeof keys)[]) => ({
    current,
    keys: new Map(names.map((name) => [name, keys[name]])),
  });
  let known = ring("old", "old");
  const first = sealKubeconfig({ name: "old", bytes: keys.old }, "one", sim.kubeconfig());
  let credentials: RegisteredCluster["credentials"] = first;
  const told: string[] = [];
  let connections = 0;
  const startRegistry = () => {
    const registry = new ClusterRegistry({
      clock,
      listens: false,
      list: async () => ({ registered: [{ name: "one", credentials }], forgotten: [] }),
      async connect({ name, credentials: stored }) {
        const kubeconfig = await openCredentials(stored, { cluster: name, keys: known, allowLocal: false });
        connections += 1;
        return connectCluster({
          name,
          kubeconfig,
          installation: INSTALLATION,
          clock,
          random: seededRandom(5),
          createNamespaces: false,
          onJobChanged: () => undefined,
          onCapacity: async () => null,
          onError: () => undefined,
        });
      },
      onJobChanged: () => undefined,
      onError: (error) => told.push(String(error)),
    });
    t.after(() => registry.clusters.close());
    return registry;
  };
  const registry = startRegistry();
  await registry.refresh();
  credentials = resealCredentials(first, "one", ring("new", "old", "new"));
  await registry.refresh();
  assert.deepEqual([connections, registry.connected().length, registry.problemOf("one"), told], [1, 1, null, []]);
  // A process that starts now has to open them.
  const started = startRegistry();
  await started.refresh();
  await started.refresh();
  assert.deepEqual([connections, started.connected().length, told.length], [1, 0, 1]);
  assert.match(started.problemOf("one") ?? "", /encrypted with the key new; there are old here: put the key back/);
  // The key is there, and it is another one of that name: that is another problem, and told too.
  known = { current: "old", keys: new Map([["new", keys.old]]) };
  await started.refresh();
  assert.equal(told.length, 2);
  known = ring("old", "old", "new");
  await started.refresh();
  assert.deepEqual([connections, started.connected().length, started.problemOf("one")], [2, 1, null]);
});

const access = (cluster: object, user: object = { token: "t" }) =>
  JSON.stringify({
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    "current-context": "c",
  });
const server = "https://127.0.0.1:1";
const poison: Record<string, { text: string; problem: RegExp }> = {
  "tls-name": { text: access({ server, "tls-server-name": 5 }), problem: /tls-server-name must be text/ },
  "token-file": { text: access({ server }, { "token-file": "/dev/zero" }), problem: /token-file is not allowed/ },
  device: { text: access({ server }, { tokenFile: "/dev/zero" }), problem: /tokenFile names a file/ },
  "bad-pem": { text: access({ server, "certificate-authority-data": "AAAA" }), problem: /must be a PEM file/ },
  "bad-url": { text: access({ server: "nowhere" }), problem: /must be an https or http URL/ },
  proxy: { text: access({ server, "proxy-url": "http://a" }), problem: /leads through a proxy/ },
  "no-user": { text: access({ server }).replace(',"user":"u"', ""), problem: /context\.user is missing/ },
  nothing: { text: "", problem: /must be an object/ },
  brackets: { text: "[".repeat(60_000), problem: /must nest at most/ },
};

test("clusters whose stored credentials are refused today are left out, each with a reason", async (t) => {
  const key = randomBytes(32);
  const good = { name: "good", credentials: sealKubeconfig({ name: "default", bytes: key }, "good", sim.kubeconfig()) };
  const bad = Object.entries(poison).map(([name, { text }]) => ({
    name,
    credentials: sealKubeconfig({ name: "default", bytes: key }, name, text),
  }));
  const file = { name: "file", credentials: { kind: "file", path: "/dev/zero", context: "" } };
  const odd = { name: "odd", credentials: { kind: "sealed", nonce: 5, text: [], tag: null } };
  const table: { registered: RegisteredCluster[]; forgotten: string[] } = {
    registered: [...bad, file, odd, good],
    forgotten: [],
  };
  const unusable: string[] = [];
  const told: string[] = [];
  const registry = new ClusterRegistry({
    clock,
    listens: true,
    list: async () => table,
    connect: async ({ name, credentials }) =>
      connectCluster({
        name,
        kubeconfig: await openCredentials(credentials, {
          cluster: name,
          keys: onlyDefault(key),
          allowLocal: name === "file",
        }),
        installation: INSTALLATION,
        clock,
        random: seededRandom(5),
        createNamespaces: false,
        onJobChanged: () => undefined,
        onCapacity: async () => null,
        onError: () => undefined,
      }),
    onJobChanged: () => undefined,
    onUnusable: async (name) => void unusable.push(name),
    onError: (_error, what) => told.push(what),
  });
  t.after(() => registry.clusters.close());
  await registry.refresh();
  await registry.refresh();
  await until(() => registry.clusters.synced(), "the good one is listed");
  assert.deepEqual(
    registry.connected().map(({ name }) => name),
    ["good"],
  );
  for (const [name, { problem }] of Object.entries(poison)) assert.match(registry.problemOf(name) ?? "", problem);
  assert.match(registry.problemOf("file") ?? "", /\/dev\/zero is not a regular file/);
  assert.match(registry.problemOf("odd") ?? "", /encrypted with another key/);
  assert.equal(registry.problemOf("good"), null);
  assert.equal(told.length, table.registered.length - 1, "each is reported once");
  assert.equal(unusable.length, 2 * (table.registered.length - 1), "and recorded each time");
  table.registered = [good];
  await registry.refresh();
  assert.equal(registry.problemOf("bad-url"), null, "a cluster that is deleted has no problem");
});

test("a check of a healthy cluster finds nothing", async () => {
  const check = await checkCluster(sim.kubeconfig(), { clock, namespaces: ["default"] });
  assert.deepEqual(check.findings, []);
  assert.match(check.kubernetesVersion, /^v1\./);
  assert.ok(Math.abs(check.clockSkewMs ?? Number.NaN) < 5_000);
});

test("a clock that differs is a warning", async () => {
  const early = { ...clock, nowMs: () => clock.nowMs() - 60_000 };
  const { findings } = await checkCluster(sim.kubeconfig(), { clock: early, namespaces: [] });
  assert.deepEqual(
    findings.map(({ severity, code }) => [severity, code]),
    [["WARNING", "ClockSkew"]],
  );
});

test("a server that does not answer, or rejects our credentials, is one error", async (t) => {
  const dead = await checkCluster(kubeconfigOf(deadServer()), { clock, namespaces: [] });
  assert.deepEqual([dead.kubernetesVersion, dead.findings.map(({ code }) => code)], ["", ["Unreachable"]]);
  const proxy = await startProxy(sim.url, () => ({ status: 401 }));
  t.after(() => proxy.close());
  const unknown = await checkCluster(proxy.kubeconfig, { clock, namespaces: [] });
  assert.deepEqual(
    unknown.findings.map(({ code }) => code),
    ["Unauthorized"],
  );
});

test("a server that stops answering during a check is one error, after a limited time", async (t) => {
  const proxy = await startProxy(sim.url, ({ path }) => (path === "/version" ? "pass" : "hang"));
  t.after(() => proxy.close());
  const { kubernetesVersion, findings } = await checkCluster(proxy.kubeconfig, {
    clock: fastClock(50),
    namespaces: [],
  });
  assert.match(kubernetesVersion, /^v1\./);
  // A machine that is busy makes the fast clock run ahead, which is a warning.
  const others = findings.filter(({ code }) => code !== "ClockSkew");
  assert.deepEqual(
    others.map(({ severity, code }) => [severity, code]),
    [["ERROR", "Unreachable"]],
  );
});

test("if access cannot be checked, each permission is reported as unknown", async (t) => {
  const proxy = await startProxy(sim.url, ({ path }) => (path.includes("accessreviews") ? { status: 403 } : "pass"));
  t.after(() => proxy.close());
  const { findings } = await checkCluster(proxy.kubeconfig, { clock, namespaces: [] });
  assert.equal(findings.length, PERMISSIONS.filter(({ scheduler }) => scheduler === undefined).length);
  assert.ok(findings.every(({ message }) => message.startsWith("cannot check whether Gangway may ")));
});

test("each missing right is named, with what is off without it; of Secrets, those that it serves", async (t) => {
  // The answer {} allows nothing.
  const proxy = await startProxy(sim.url, ({ path }) => (path.includes("accessreviews") ? { status: 201 } : "pass"));
  t.after(() => proxy.close());
  const secrets = [{ namespace: "ops", name: "west-kubeconfig" }];
  const { findings } = await checkCluster(proxy.kubeconfig, { clock, namespaces: [], secrets });
  const wanted = PERMISSIONS.filter(({ scheduler }) => scheduler === undefined);
  assert.equal(findings.length, wanted.length + 1);
  assert.ok(findings.every(({ code, message }) => code === "MissingPermission" && /\. Without it, .+/.test(message)));
  const messages = findings.map(({ message }) => message);
  assert.ok(messages.some((one) => one.startsWith("Gangway may not get /readyz: needed to ask whether")));
  const secret = "Gangway may not get secrets named west-kubeconfig in namespace ops: needed to read the kubeconfig";
  assert.ok(messages.some((one) => one.startsWith(secret)));
});

const flavor = (nodeLabels: Readonly<Record<string, string>>, resource = "nvidia.com/gpu") => {
  return { name: "gpu/x", resource, nodeLabels };
};

test("a flavor that no node belongs to is a warning", async () => {
  const flavors = [flavor({ "nvidia.com/gpu.product": "h100" }), flavor({ zone: "a" }), flavor({}, "nvidia.co/gpu")];
  const { findings } = await checkCluster(sim.kubeconfig(), { clock, namespaces: [], flavors });
  const warning = { severity: "WARNING", code: "FlavorWithoutNodes" };
  assert.deepEqual(findings, [
    { ...warning, message: "flavor gpu/x: no node carries label zone=a" },
    { ...warning, message: "flavor gpu/x: no node has nvidia.co/gpu; did you mean nvidia.com/gpu?" },
  ]);
});

test("nodes without the label of a level are counted, level by level, in the levels of their flavor", async () => {
  const items = [
    { metadata: { labels: { block: "a", rack: "1" } } },
    { metadata: { labels: { block: "a" } } },
    { metadata: { labels: {} } },
    { metadata: { labels: { gpu: "x" } } },
    { metadata: { labels: { gpu: "x", slot: "7" } } },
  ];
  const client = { request: async () => ({ kind: "ok" as const, object: { items } }) };
  const topology = ["block", "rack"].map((name) => ({ name, label: name }));
  const messages = async (of: Parameters<typeof nodeFindings>[1]) =>
    (await nodeFindings(client, of)).filter(({ code }) => code === "NodesWithoutLevel").map(({ message }) => message);
  assert.deepEqual(await messages({ topology }), [
    "3 of 5 nodes do not have the label block of the level block",
    "4 of 5 nodes do not have the label rack of the level rack",
  ]);
  const own = { ...flavor({ gpu: "x" }), topology: [{ name: "rack", label: "slot" }] };
  assert.deepEqual(await messages({ topology: topology.slice(0, 1), flavors: [own] }), [
    "1 of 3 nodes do not have the label block of the level block",
    "flavor gpu/x: 1 of 2 nodes do not have the label slot of the level rack",
  ]);
  assert.deepEqual(await messages({ topology: [], flavors: [{ ...own, topology: [] }] }), []);
});

test("flavors are not judged if the nodes cannot be listed, or their list has no end", async (t) => {
  const refusing = await startProxy(sim.url, ({ path }) => (path === "/api/v1/nodes" ? { status: 403 } : "pass"));
  t.after(() => refusing.close());
  const of = { clock, namespaces: [], flavors: [flavor({ zone: "a" })] };
  assert.deepEqual((await checkCluster(refusing.kubeconfig, of)).findings, []);
  const page = { metadata: { continue: "more" }, items: [{ metadata: { labels: { zone: "b" } } }, null, "x"] };
  let pages = 0;
  const client = {
    request: async () => {
      pages += 1;
      return { kind: "ok" as const, object: page };
    },
  };
  const endless = await nodeFindings(client, of);
  assert.deepEqual([endless, pages], [[], 40]);
});

test("a finding about flavors repeats no text of the server but names of Kubernetes", async () => {
  const hostile = { gpu: "<script>", zone: "b", "gpu\u001b": "x" };
  const items = [{ metadata: { labels: hostile }, status: { allocatable: { "nvidia.com/gpu": "8" } } }];
  const client = { request: async () => ({ kind: "ok" as const, object: { items } }) };
  const messages = async (nodeLabels: Readonly<Record<string, string>>) =>
    (await nodeFindings(client, { flavors: [flavor(nodeLabels)] })).map(({ message }) => message);
  assert.deepEqual(await messages({ gpu: "h100" }), ["flavor gpu/x: no node carries label gpu=h100"]);
  assert.deepEqual(await messages({ zone: "a" }), ["flavor gpu/x: no node carries label zone=a; there is zone=b"]);
});

const webhooks: Record<string, { namespaceSelector?: object; name?: string; resources?: string[]; warns: boolean }> = {
  "over all namespaces": { warns: true },
  "that excludes ours": { namespaceSelector: notIn("default", "kube-system"), warns: false },
  "that excludes only others": { namespaceSelector: notIn("kube-system"), warns: true },
  "over one other namespace": {
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "batch" } },
    warns: false,
  },
  "that requires a label which a namespace may have": {
    namespaceSelector: { matchLabels: { "kueue-managed": "true" } },
    warns: true,
  },
  "that does not look at pods": { resources: ["jobs"], warns: false },
  "of no queueing system": { name: "sidecars.example.com", warns: false },
};

function notIn(...values: readonly string[]) {
  return { matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "NotIn", values }] };
}

for (const [
  which,
  { warns, name = "mpod.kueue.x-k8s.io", resources = ["pods"], namespaceSelector = {} },
] of Object.entries(webhooks)) {
  test(`a webhook ${which} is ${warns ? "" : "not "}reported as a warning`, async () => {
    const client = clientOf(sim.kubeconfig());
    const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    const rules = [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources }];
    const body = {
      metadata: { name: "hooks" },
      webhooks: [{ name, namespaceSelector: { ...namespaceSelector }, rules }],
    };
    assert.equal((await client.request({ method: "POST", path, body })).kind, "ok");
    const { findings } = await checkCluster(sim.kubeconfig(), { clock, namespaces: ["default"] });
    await client.request({ method: "DELETE", path: `${path}/hooks` });
    await client.close();
    assert.deepEqual(
      findings.map(({ code }) => code),
      warns ? ["OtherQueueingSystem"] : [],
    );
  });
}
