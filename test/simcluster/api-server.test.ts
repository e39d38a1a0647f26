import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { V1Pod, V1Status } from "@kubernetes/client-node";
import { CoreV1Api, KubeConfig, PatchStrategy, setHeaderOptions, Watch } from "@kubernetes/client-node";
import type { SimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import { startSimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { fastClock, podManifest, seeded } from "./support.ts";

const nodes = [{ name: "n1", labels: {}, allocatable: { cpu: "64", memory: "512Gi", "nvidia.com/gpu": "8" } }];

let cluster: SimCluster;
let api: CoreV1Api;
let config: KubeConfig;

before(async () => {
  cluster = await startSimCluster({ name: "one", nodes, directory: null, clock: fastClock(50), random: seeded(7) });
  config = new KubeConfig();
  config.loadFromString(cluster.kubeconfig());
  api = config.makeApiClient(CoreV1Api);
});

after(() => cluster.close());

type Refusal = { code: number; body: V1Status };

async function refusal(call: Promise<unknown>): Promise<V1Status> {
  try {
    await call;
  } catch (error) {
    const { body } = error as Refusal;
    return (typeof body === "string" ? JSON.parse(body) : body) as V1Status;
  }
  throw new Error("the call was not refused");
}

function podBody(name: string, more: Parameters<typeof podManifest>[1] = {}): V1Pod {
  return podManifest(name, more) as V1Pod;
}

async function namespace(name: string): Promise<string> {
  await api.createNamespace({ body: { metadata: { name } } });
  return name;
}

type Seen = { type: string; name: string; phase: string; version: string; code: number | undefined };

/** Watches until `done` is true of the events. Returns the events. */
async function watched(
  path: string,
  query: Record<string, string | boolean>,
  done: (seen: readonly Seen[]) => boolean,
) {
  const seen: Seen[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<readonly Seen[]>();
  const onEvent = (type: string, object: { metadata?: JsonObject; status?: JsonObject; code?: number }) => {
    const { name, resourceVersion } = object.metadata ?? {};
    const phase = typeof object.status === "object" ? String(object.status["phase"]) : "";
    seen.push({ type, name: String(name), phase, version: String(resourceVersion), code: object.code });
    if (done(seen)) resolve(seen);
  };
  const abort = await new Watch(config).watch(path, query, onEvent, (error) => {
    reject(error ?? new Error(`the watch ended after ${JSON.stringify(seen)}`));
  });
  try {
    return await promise;
  } finally {
    abort.abort();
  }
}

test("a pod is seen through its whole life", async () => {
  const body = podBody("life", { gpus: 8, sim: { run: "5s" } });
  const created = await api.createNamespacedPod({ namespace: "default", body });
  assert.equal(created.status?.phase, "Pending");
  assert.match(created.metadata?.uid ?? "", /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const query = { fieldSelector: "metadata.name=life", resourceVersion: created.metadata?.resourceVersion ?? "" };
  const seen = await watched("/api/v1/pods", query, (all) => all.at(-1)?.phase === "Succeeded");
  assert.deepEqual([...new Set(seen.map((one) => one.phase))], ["Pending", "Running", "Succeeded"]);
  const ended = await api.readNamespacedPod({ namespace: "default", name: "life" });
  assert.equal(ended.spec?.nodeName, "n1");
  assert.equal(ended.status?.containerStatuses?.[0]?.state?.terminated?.exitCode, 0);
  const conditions = Object.fromEntries((ended.status?.conditions ?? []).map(({ type, status }) => [type, status]));
  assert.deepEqual(conditions, { PodScheduled: "True", Initialized: "True", Ready: "False", ContainersReady: "False" });
});

test("pages show one moment, and a continue token outlives later changes", async () => {
  await namespace("pages");
  for (const name of ["a", "b", "c", "d", "e"]) {
    await api.createNamespacedConfigMap({ namespace: "pages", body: { metadata: { name, labels: { page: "yes" } } } });
  }
  const first = await api.listNamespacedConfigMap({ namespace: "pages", labelSelector: "page", limit: 2 });
  await api.deleteNamespacedConfigMap({ namespace: "pages", name: "d" });
  await api.createNamespacedConfigMap({
    namespace: "pages",
    body: { metadata: { name: "cc", labels: { page: "yes" } } },
  });
  const names = first.items.map(({ metadata }) => metadata?.name);
  for (let token = first.metadata?._continue; token; ) {
    const page = await api.listNamespacedConfigMap({
      namespace: "pages",
      labelSelector: "page",
      limit: 2,
      _continue: token,
    });
    assert.equal(page.metadata?.resourceVersion, first.metadata?.resourceVersion);
    names.push(...page.items.map(({ metadata }) => metadata?.name));
    token = page.metadata?._continue;
  }
  assert.deepEqual(names, ["a", "b", "c", "d", "e"]);
});

test("a continue token and a watch of a forgotten version get 410", async () => {
  const page = await api.listNode({ limit: 1 });
  const old = page.metadata?.resourceVersion ?? "";
  const configMaps = await api.listConfigMapForAllNamespaces({ limit: 1 });
  await api.createNamespacedConfigMap({ namespace: "default", body: { metadata: { name: "later" } } });
  cluster.model.store.history.compact(cluster.model.store.version);
  const status = await refusal(
    api.listConfigMapForAllNamespaces({ limit: 1, _continue: configMaps.metadata?._continue ?? "" }),
  );
  assert.deepEqual([status.code, status.reason], [410, "Expired"]);
  const [seen] = await watched("/api/v1/pods", { resourceVersion: old }, (all) => all.length === 1);
  assert.deepEqual([seen?.type, seen?.code], ["ERROR", 410]);
});

test("a quiet watch gets its version by bookmarks", async () => {
  const list = await api.listNode();
  const query = { resourceVersion: list.metadata?.resourceVersion ?? "", allowWatchBookmarks: true };
  await api.createNamespacedConfigMap({ namespace: "default", body: { metadata: { name: "unrelated" } } });
  const [seen] = await watched("/api/v1/nodes", query, (all) => all.length === 1);
  assert.equal(seen?.type, "BOOKMARK");
  assert.ok(Number(seen?.version) > Number(list.metadata?.resourceVersion));
});

test("an object that leaves a watch's selection is DELETED there", async () => {
  const body = { metadata: { name: "leaver", labels: { team: "a" } } };
  const made = await api.createNamespacedConfigMap({ namespace: "default", body });
  await api.patchNamespacedConfigMap(
    { namespace: "default", name: "leaver", body: { metadata: { labels: { team: "b" } } } },
    setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
  );
  const query = { labelSelector: "team in (a)", resourceVersion: String(Number(made.metadata?.resourceVersion) - 1) };
  const seen = await watched("/api/v1/namespaces/default/configmaps", query, (all) => all.length === 2);
  assert.deepEqual(
    seen.map(({ type }) => type),
    ["ADDED", "DELETED"],
  );
});

test("a watch ends by itself after timeoutSeconds", async () => {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  await new Watch(config).watch("/api/v1/nodes", { timeoutSeconds: 1 }, () => {}, resolve);
  assert.equal(await promise, null);
});

test("only the object of that uid is deleted", async () => {
  const { metadata } = await api.createNamespacedPod({ namespace: "default", body: podBody("precise", { gpus: 9 }) });
  const wrong = await refusal(
    api.deleteNamespacedPod({ namespace: "default", name: "precise", body: { preconditions: { uid: "other" } } }),
  );
  assert.deepEqual([wrong.code, wrong.reason, wrong.details], [409, "Conflict", { name: "precise", kind: "Pod" }]);
  const message =
    'Operation cannot be fulfilled on Pod "precise": the UID in the precondition (other) does not match ' +
    `the UID in record (${metadata?.uid}). The object might have been deleted and then recreated`;
  assert.equal(wrong.message, message);
  const preconditions = { uid: metadata?.uid ?? "" };
  const gone = await api.deleteNamespacedPod({ namespace: "default", name: "precise", body: { preconditions } });
  assert.equal(gone.metadata?.uid, metadata?.uid);
  assert.equal((await refusal(api.readNamespacedPod({ namespace: "default", name: "precise" }))).code, 404);
});

test("an anchor's objects are deleted with it, also those created after its end", async () => {
  const anchor = await api.createNamespacedConfigMap({ namespace: "default", body: { metadata: { name: "anchor" } } });
  const owner = {
    apiVersion: "v1",
    kind: "ConfigMap",
    name: "anchor",
    uid: anchor.metadata?.uid ?? "",
    controller: true,
  };
  const owned = (name: string) =>
    podBody(name, { sim: { run: "forever" }, metadata: { name, ownerReferences: [owner] } });
  const start = { resourceVersion: anchor.metadata?.resourceVersion ?? "" };
  await api.createNamespacedPod({ namespace: "default", body: owned("early") });
  await api.deleteNamespacedConfigMap({
    namespace: "default",
    name: "anchor",
    body: { propagationPolicy: "Background" },
  });
  await api.createNamespacedPod({ namespace: "default", body: owned("late") });
  const seen = await watched("/api/v1/pods", start, (all) => all.filter(({ type }) => type === "DELETED").length === 2);
  const gone = seen.filter(({ type }) => type === "DELETED").map(({ name }) => name);
  assert.deepEqual([...gone].sort(), ["early", "late"]);
});

test("a namespace under deletion deletes its content, and refuses new content", async () => {
  await namespace("ending");
  const manifest = podBody("slow", { sim: { run: "forever", "termination-grace": "20s", pull: "0s", start: "0s" } });
  const { metadata } = await api.createNamespacedPod({ namespace: "ending", body: manifest });
  await watched(
    "/api/v1/namespaces/ending/pods",
    { resourceVersion: metadata?.resourceVersion ?? "" },
    (all) => all.at(-1)?.phase === "Running",
  );
  const marked = await api.deleteNamespace({ name: "ending" });
  const status = await refusal(
    api.createNamespacedConfigMap({ namespace: "ending", body: { metadata: { name: "x" } } }),
  );
  assert.deepEqual(
    [status.code, status.reason, status.details?.causes?.[0]?.reason],
    [403, "Forbidden", "NamespaceTerminating"],
  );
  const query = { resourceVersion: marked.metadata?.resourceVersion ?? "" };
  await watched("/api/v1/namespaces", query, (all) =>
    all.some(({ type, name }) => type === "DELETED" && name === "ending"),
  );
});

test("a resource quota refuses pods that exceed it, and shows the use", async () => {
  await namespace("tight");
  const spec = { hard: { "requests.nvidia.com/gpu": "4", pods: "10" } };
  await api.createNamespacedResourceQuota({ namespace: "tight", body: { metadata: { name: "gpus" }, spec } });
  await api.createNamespacedPod({ namespace: "tight", body: podBody("fits", { gpus: 3, sim: { run: "forever" } }) });
  const status = await refusal(api.createNamespacedPod({ namespace: "tight", body: podBody("more", { gpus: 2 }) }));
  assert.equal(
    status.message,
    'pods "more" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=2, ' +
      "used: requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4",
  );
  assert.deepEqual([status.code, status.reason, status.details], [403, "Forbidden", { name: "more", kind: "pods" }]);
  const path = "/api/v1/namespaces/tight/resourcequotas";
  await watched(path, {}, () => true);
  const quota = await api.readNamespacedResourceQuota({ namespace: "tight", name: "gpus" });
  assert.deepEqual(quota.status?.used, { "requests.nvidia.com/gpu": "3", pods: "1" });
});

test("an update of a stale version conflicts, a patch without one does not", async () => {
  const { metadata } = await api.createNamespacedConfigMap({
    namespace: "default",
    body: { metadata: { name: "shared" } },
  });
  const body = { metadata: { name: "shared", resourceVersion: metadata?.resourceVersion ?? "" }, data: { a: "1" } };
  await api.replaceNamespacedConfigMap({ namespace: "default", name: "shared", body });
  const status = await refusal(api.replaceNamespacedConfigMap({ namespace: "default", name: "shared", body }));
  assert.equal(
    status.message,
    'Operation cannot be fulfilled on configmaps "shared": the object has been modified; ' +
      "please apply your changes to the latest version and try again",
  );
  const patch = [{ op: "add", path: "/data/b", value: "2" }];
  const patched = await api.patchNamespacedConfigMap({ namespace: "default", name: "shared", body: patch });
  assert.deepEqual(patched.data, { a: "1", b: "2" });
});

test("a dry run gets the usual answer, and changes nothing", async () => {
  const dry = await api.createNamespacedPod({ namespace: "default", body: podBody("dry"), dryRun: "All" });
  assert.equal(dry.spec?.schedulerName, "default-scheduler");
  assert.equal((await refusal(api.readNamespacedPod({ namespace: "default", name: "dry" }))).code, 404);
});

const refused: Record<
  string,
  { call: () => Promise<unknown>; code: number; reason: string; fields?: readonly string[]; message?: RegExp }
> = {
  "a name that is taken": {
    call: () => api.createNamespace({ body: { metadata: { name: "default" } } }),
    code: 409,
    reason: "AlreadyExists",
    message: /^namespaces "default" already exists$/,
  },
  "a namespace that is not there": {
    call: () => api.createNamespacedPod({ namespace: "nowhere", body: podBody("p") }),
    code: 404,
    reason: "NotFound",
    message: /^namespaces "nowhere" not found$/,
  },
  "a namespace that must stay": {
    call: () => api.deleteNamespace({ name: "kube-system" }),
    code: 403,
    reason: "Forbidden",
  },
  "a bad name and no containers, both at once": {
    call: () =>
      api.createNamespacedPod({ namespace: "default", body: podBody("Bad_Name", { spec: { containers: [] } }) }),
    code: 422,
    reason: "Invalid",
    fields: ["metadata.name", "spec.containers"],
  },
  "containers of one name, one without an image": {
    call: () => {
      const containers = [{ name: "a", image: "i" }, { name: "a" }];
      return api.createNamespacedPod({ namespace: "default", body: podBody("twice", { spec: { containers } }) });
    },
    code: 422,
    reason: "Invalid",
    fields: ["spec.containers[1].image", "spec.containers[1].name"],
  },
  "a GPU that is requested without a limit": {
    call: () => {
      const containers = [{ name: "a", image: "i", resources: { requests: { "nvidia.com/gpu": "1" } } }];
      return api.createNamespacedPod({ namespace: "default", body: podBody("nolimit", { spec: { containers } }) });
    },
    code: 422,
    reason: "Invalid",
    fields: ["spec.containers[0].resources.limits"],
  },
  "a quantity that is none": {
    call: () => {
      const containers = [{ name: "a", image: "i", resources: { limits: { cpu: "much" } } }];
      return api.createNamespacedPod({ namespace: "default", body: podBody("much", { spec: { containers } }) });
    },
    code: 400,
    reason: "BadRequest",
    message: /quantities must match the regular expression/,
  },
  "a label selector that cannot be read": {
    call: () => api.listNamespacedPod({ namespace: "default", labelSelector: "a in b" }),
    code: 400,
    reason: "BadRequest",
  },
  "a field that cannot be selected by": {
    call: () => api.listNamespacedPod({ namespace: "default", fieldSelector: "spec.color=red" }),
    code: 400,
    reason: "BadRequest",
    message: /field label not supported: spec.color/,
  },
  "a service account that is not there": {
    call: () => {
      const spec = { serviceAccountName: "nobody" };
      return api.createNamespacedPod({ namespace: "default", body: podBody("orphan", { spec }) });
    },
    code: 403,
    reason: "Forbidden",
    message: /error looking up service account default\/nobody: serviceaccount "nobody" not found/,
  },
  "no name at all": {
    call: () => api.createNamespacedConfigMap({ namespace: "default", body: { data: {} } }),
    code: 422,
    reason: "Invalid",
    message: /name or generateName is required/,
  },
};

for (const [name, { call, code, reason, fields, message = /./ }] of Object.entries(refused)) {
  test(`refused as Kubernetes does: ${name}`, async () => {
    const status = await refusal(call());
    assert.deepEqual([status.kind, status.status, status.code, status.reason], ["Status", "Failure", code, reason]);
    if (fields !== undefined)
      assert.deepEqual(
        status.details?.causes?.map(({ field }) => field),
        fields,
      );
    assert.match(status.message ?? "", message);
  });
}

test("unknown paths are 404, with a Status if their group is served", async () => {
  for (const path of ["/api/v1/unicorns", "/api/v1/namespaces/default/pods/x/exec"]) {
    const response = await fetch(cluster.url + path);
    const body = (await response.json()) as V1Status;
    assert.deepEqual([response.status, body.kind, body.reason], [404, "Status", "NotFound"], path);
  }
  for (const path of ["/apis/batch/v1/jobs", "/nothing"]) {
    const response = await fetch(cluster.url + path);
    assert.deepEqual([response.status, await response.text()], [404, "404 page not found\n"], path);
  }
  assert.equal(await (await fetch(`${cluster.url}/readyz`)).text(), "ok");
});

const faults: Record<
  string,
  { faults: Parameters<SimCluster["setFaults"]>[0]; code: number | null; applied: boolean }
> = {
  "throttling refuses with 429": { faults: { throttleWrites: 1 }, code: 429, applied: false },
  "a cluster's own error is 500": { faults: { failWrites: 1 }, code: 500, applied: false },
  "an unavailable cluster is 503": { faults: { unavailableWrites: 1 }, code: 503, applied: false },
  "a conflict is 409": { faults: { conflictWrites: 1 }, code: 409, applied: false },
  "a connection dropped early has changed nothing": { faults: { dropBeforeWrite: 1 }, code: null, applied: false },
  "a connection dropped late has changed everything": { faults: { dropAfterWrite: 1 }, code: null, applied: true },
};

for (const [name, { faults: set, code, applied }] of Object.entries(faults)) {
  test(`faults: ${name}`, async () => {
    const metadata = { name: name.replaceAll(/[^a-z0-9]+/g, "-") };
    cluster.setFaults(set);
    try {
      const response = fetch(`${cluster.url}/api/v1/namespaces/default/configmaps`, {
        method: "POST",
        body: JSON.stringify({ metadata }),
      });
      if (code === null) await assert.rejects(response);
      else assert.equal((await response).status, code);
      if (code === 429) assert.equal((await response).headers.get("retry-after"), "1");
    } finally {
      cluster.setFaults({});
    }
    const list = await api.listNamespacedConfigMap({
      namespace: "default",
      fieldSelector: `metadata.name=${metadata.name}`,
    });
    assert.equal(list.items.length, applied ? 1 : 0);
  });
}

test("faults: a watch is answered 410, as HTTP or as an event", async () => {
  cluster.setFaults({ expireWatch: 1 });
  const answers = new Set<string>();
  for (let round = 0; round < 100 && answers.size < 2; round += 1) {
    const response = await fetch(
      `${cluster.url}/api/v1/nodes?watch=true&resourceVersion=${cluster.model.store.version}`,
    );
    const text = await response.text();
    const [first = ""] = text.split("\n");
    const event = JSON.parse(first) as { type?: string; code?: number; object?: { code: number } };
    answers.add(`${response.status} ${event.type ?? ""} ${event.code ?? event.object?.code}`);
  }
  cluster.setFaults({});
  assert.deepEqual([...answers].sort(), ["200 ERROR 410", "410  410"]);
});

test("faults: a watch ends suddenly after an event, which arrived", async () => {
  const query = { resourceVersion: String(cluster.model.store.version) };
  cluster.setFaults({ endWatch: 1, delayWatchMs: 1000 });
  const { promise, resolve } = Promise.withResolvers<unknown>();
  await new Watch(config).watch("/api/v1/configmaps", query, () => {}, resolve);
  await api.createNamespacedConfigMap({ namespace: "default", body: { metadata: { generateName: "end-" } } });
  const error = await promise;
  cluster.setFaults({});
  assert.ok(error instanceof Error, "the stream was cut, not ended");
});
