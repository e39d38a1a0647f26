/** What the cluster adapter promises of any API server. The same tests run on the simulated cluster and on real ones. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { Actions } from "../../src/adapters/cluster/actions.ts";
import type { ApiResult, KubeClient } from "../../src/adapters/cluster/client.ts";
import { type Cluster, connectCluster } from "../../src/adapters/cluster/cluster.ts";
import type { CapacityReport } from "../../src/adapters/cluster/observer.ts";
import { Reflector } from "../../src/adapters/cluster/reflector.ts";
import { LABEL } from "../../src/core/job/labels.ts";
import { controllerUid } from "../../src/core/pods/pod-view.ts";
import type { Action } from "../../src/core/reconcile/decision.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { arrayAt, objectAt, stringAt } from "../../src/runtime/json.ts";
import { gang } from "../cluster/gang.ts";
import {
  clientOf,
  clock,
  configMap,
  create,
  INSTALLATION,
  seededRandom,
  startProxy,
  until,
} from "../cluster/harness.ts";
import { nodeManifest, type Subject } from "./subject.ts";

const signal = new AbortController().signal;
const done = { kind: "done" } as const;
const already = { kind: "already" } as const;

const nameOf = (object: JsonObject | null) => stringAt(objectAt(object, "metadata"), "name") ?? "";
const uidOf = (object: JsonObject | null) => stringAt(objectAt(object, "metadata"), "uid") ?? "";
const versionOf = (object: JsonObject | null) => stringAt(objectAt(object, "metadata"), "resourceVersion") ?? "";

function ok(result: ApiResult): JsonObject {
  assert.equal(result.kind, "ok", result.kind === "failed" ? result.message : "");
  return result.kind === "ok" ? result.object : {};
}

/** Registers the whole suite for one kind of server. */
export function adapterSuite(name: string, start: () => Promise<Subject>): void {
  suite(`the cluster adapter on ${name}`, { timeout: 180_000 }, () => {
    const of = new Scene(start);
    before(() => of.open());
    after(() => of.close());
    const group = customResources(of);
    ownership(of);
    deletion(of);
    refusals(of);
    lists(of);
    watches(of);
    capacity(of);
    // Last: a garbage collector looks for new kinds every half a minute only.
    test("an object of a defined kind is collected with its anchor", () => group.isCollected());
  });
}

/** Asks again while the server asks for patience, as one does that is just making the storage of a new kind. */
async function patiently(ask: () => Promise<ApiResult>): Promise<ApiResult> {
  let answer = await ask();
  await until(async () => {
    if (answer.kind === "ok" || ![429, 503].includes(answer.status)) return true;
    answer = await ask();
    return false;
  }, "the server has time");
  return answer;
}

/** The subject, an administrator's client of it, and the adapter's own. */
class Scene {
  readonly #start: () => Promise<Subject>;
  #subject: Subject | null = null;
  #admin: KubeClient | null = null;
  #adapter: KubeClient | null = null;

  constructor(start: () => Promise<Subject>) {
    this.#start = start;
  }

  async open(): Promise<void> {
    this.#subject = await this.#start();
    this.#admin = clientOf(this.subject.kubeconfig);
    this.#adapter = clientOf(this.subject.adapterKubeconfig);
  }

  async close(): Promise<void> {
    await this.#admin?.close();
    await this.#adapter?.close();
    await this.#subject?.stop();
  }

  get subject(): Subject {
    assert.ok(this.#subject);
    return this.#subject;
  }

  get admin(): KubeClient {
    assert.ok(this.#admin);
    return this.#admin;
  }

  get adapter(): KubeClient {
    assert.ok(this.#adapter);
    return this.#adapter;
  }

  /** Actions of a worker that has seen nothing yet. */
  actions(options: { createNamespaces?: boolean; client?: KubeClient } = {}): Actions {
    return new Actions({
      client: options.client ?? this.adapter,
      clock,
      installation: INSTALLATION,
      seen: () => undefined,
      writeBudget: 50,
      createNamespaces: options.createNamespaces ?? false,
    });
  }

  async get(resource: string, name: string, namespace = "default"): Promise<JsonObject | null> {
    const path = `/api/v1/namespaces/${namespace}/${resource}/${name}`;
    const got = await this.admin.request({ method: "GET", path });
    if (got.kind === "failed") assert.equal(got.status, 404, got.message);
    return got.kind === "ok" ? got.object : null;
  }

  /** A namespace with all that Kubernetes puts into it, so that pods can be made there. */
  async namespace(name: string): Promise<string> {
    ok(await this.admin.request({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name } } }));
    await until(async () => (await this.get("serviceaccounts", "default", name)) !== null, "its account is there");
    return name;
  }

  proxy(treat: Parameters<typeof startProxy>[1]) {
    return startProxy(this.subject.url, treat, this.subject);
  }

  /** A connected cluster with everything it says. */
  connect(): { cluster: Cluster; changed: string[]; reports: CapacityReport[] } {
    const changed: string[] = [];
    const reports: CapacityReport[] = [];
    const cluster = connectCluster({
      name: "one",
      kubeconfig: this.subject.adapterKubeconfig,
      installation: INSTALLATION,
      clock,
      random: seededRandom(3),
      createNamespaces: false,
      onJobChanged: (jobUid) => changed.push(jobUid),
      onCapacity: (report) => void reports.push(report),
      onError: () => undefined,
    });
    return { cluster, changed, reports };
  }
}

function ownership(of: Scene): void {
  test("a pod and a service are owned and controlled by their anchor's uid", async () => {
    const actions = of.actions();
    const { createAnchor, createPod, createService, anchor, job } = gang();
    assert.deepEqual(await actions.act(createAnchor, signal), done);
    assert.deepEqual(await actions.act(createPod(), signal), done);
    assert.deepEqual(await actions.act(createService, signal), done);
    const uid = uidOf(await of.get("configmaps", anchor));
    for (const resource of ["pods", "services"]) {
      const metadata = objectAt(await of.get(resource, `${job}-worker-0`), "metadata");
      const owner = { apiVersion: "v1", kind: "ConfigMap", name: anchor, uid };
      assert.deepEqual(metadata["ownerReferences"], [{ ...owner, controller: true, blockOwnerDeletion: true }]);
    }
  });

  test("what exists and is ours is already done, for a worker that knows nothing of it too", async () => {
    const { createAnchor, createPod, createService } = gang();
    const first = of.actions();
    for (const action of [createAnchor, createPod(), createService]) await first.act(action, signal);
    const second = of.actions();
    for (const action of [createAnchor, createPod(), createService]) {
      assert.deepEqual(await second.act(action, signal), already, action.kind);
    }
  });

  test("an object without controller that carries our job and admission is adopted", async () => {
    const actions = of.actions();
    const { createAnchor, createPod, anchor, job } = gang();
    ok(await create(of.admin, "pods", createPod().manifest));
    await actions.act(createAnchor, signal);
    assert.deepEqual(await actions.act(createPod(), signal), already);
    const pod = await of.get("pods", `${job}-worker-0`);
    assert.equal(controllerUid(objectAt(pod, "metadata")), uidOf(await of.get("configmaps", anchor)));
  });

  const strangers = {
    "without our labels": {},
    "of another job": { [LABEL.jobUid]: "another", [LABEL.admission]: "1", [LABEL.installation]: INSTALLATION },
    "of another installation": { [LABEL.installation]: "another" },
    "of an older admission": { [LABEL.admission]: "0" },
  };
  for (const [whose, labels] of Object.entries(strangers)) {
    test(`a pod under our name ${whose} is refused and left as it is`, async () => {
      const actions = of.actions();
      const one = gang();
      const { manifest } = one.createPod();
      const own = whose === "without our labels" ? {} : { ...one.labels, ...labels };
      const stranger = { ...manifest, metadata: { ...manifest.metadata, labels: own } };
      const before = ok(await create(of.admin, "pods", stranger));
      await actions.act(one.createAnchor, signal);
      const outcome = await actions.act(one.createPod(), signal);
      assert.equal(outcome.kind === "failed" && outcome.reason, "AlreadyExists");
      const now = await of.get("pods", `${one.job}-worker-0`);
      assert.equal(uidOf(now), uidOf(before));
      assert.equal(controllerUid(objectAt(now, "metadata")), null);
    });
  }

  test("a pod that another object controls is refused though its labels are ours", async () => {
    const actions = of.actions();
    const { createAnchor, createPod, job } = gang();
    const other = configMap(`${job}-other-owner`);
    const owner = { apiVersion: "v1", kind: "ConfigMap", name: `${job}-other-owner`, controller: true };
    const uid = uidOf(ok(await create(of.admin, "configmaps", other)));
    const { manifest } = createPod();
    const metadata = { ...manifest.metadata, ownerReferences: [{ ...owner, uid }] };
    ok(await create(of.admin, "pods", { ...manifest, metadata }));
    await actions.act(createAnchor, signal);
    const outcome = await actions.act(createPod(), signal);
    assert.equal(outcome.kind === "failed" && outcome.reason, "AlreadyExists");
  });

  test("an anchor's name that something else holds is refused", async () => {
    const actions = of.actions();
    const { createAnchor, createPod, anchor, job } = gang();
    ok(await create(of.admin, "configmaps", configMap(anchor)));
    const outcome = await actions.act(createAnchor, signal);
    assert.equal(outcome.kind === "failed" && outcome.reason, "AlreadyExists");
    const pod = await actions.act(createPod(), signal);
    assert.equal(pod.kind === "failed" && pod.reason, "AnchorMissing");
    assert.equal(await of.get("pods", `${job}-worker-0`), null);
  });

  test("nothing is made under an anchor that is absent or is being deleted", async () => {
    const actions = of.actions();
    const { createAnchor, createPod, anchor, job } = gang();
    const absent = await actions.act(createPod(), signal);
    assert.equal(absent.kind === "failed" && absent.reason, "AnchorMissing");
    const held = { ...createAnchor.manifest.metadata, finalizers: ["example.com/hold"] };
    ok(await create(of.admin, "configmaps", { ...createAnchor.manifest, metadata: held }));
    const path = `/api/v1/namespaces/default/configmaps/${anchor}`;
    ok(await of.admin.request({ method: "DELETE", path }));
    const leaving = await actions.act(createPod(), signal);
    assert.equal(leaving.kind === "failed" && leaving.reason, "AnchorMissing");
    assert.equal(await of.get("pods", `${job}-worker-0`), null);
    ok(await of.admin.request({ method: "PATCH", path, body: { metadata: { finalizers: null } } }));
  });
}

function deletion(of: Scene): void {
  test("only the object of the named uid is deleted", async () => {
    const actions = of.actions();
    const { createAnchor, createPod, deletePod, job } = gang();
    await actions.act(createAnchor, signal);
    await actions.act(createPod(), signal);
    const uid = uidOf(await of.get("pods", `${job}-worker-0`));
    assert.deepEqual(await actions.act(deletePod("00000000-0000-0000-0000-000000000000"), signal), already);
    assert.equal(uidOf(await of.get("pods", `${job}-worker-0`)), uid);
    assert.deepEqual(await actions.act(deletePod(uid), signal), done);
    assert.deepEqual(await actions.act({ ...deletePod(uid), name: "never-was" }, signal), already);
    await until(async () => (await of.get("pods", `${job}-worker-0`)) === null, "the pod is gone");
  });

  test("what an anchor owns is collected after it, also what a late worker makes under its uid", async () => {
    const actions = of.actions();
    const { createAnchor, createPod, createService, deleteAnchor, anchor, job } = gang();
    for (const action of [createAnchor, createPod(), createService]) {
      assert.deepEqual(await actions.act(action, signal), done);
    }
    const uid = uidOf(await of.get("configmaps", anchor));
    assert.deepEqual(await actions.act(deleteAnchor("00000000-0000-0000-0000-000000000000"), signal), already);
    assert.deepEqual(await of.actions().act(deleteAnchor(uid), signal), done);
    assert.deepEqual(await actions.act(createPod(1), signal), done, "its uid is still believed");
    for (const [resource, name] of [
      ["pods", `${job}-worker-0`],
      ["pods", `${job}-worker-1`],
      ["services", `${job}-worker-0`],
    ] as const) {
      await until(async () => (await of.get(resource, name)) === null, `${resource} ${name} collected`);
    }
  });
}

function refusals(of: Scene): void {
  const refused = async (action: Action) => {
    const outcome = await of.actions().act(action, signal);
    assert.equal(outcome.kind, "failed");
    return outcome.kind === "failed" ? outcome : { reason: "", message: "" };
  };

  test("what is not valid is refused with each field that is wrong", async () => {
    const one = gang();
    await of.actions().act(one.createAnchor, signal);
    const { manifest } = one.createPod();
    const spec = {
      containers: [{ name: "Main", image: "busybox:1.36" }, { name: "second" }],
      restartPolicy: "Perhaps",
    };
    const { reason, message } = await refused({ ...one.createPod(), manifest: { ...manifest, spec } });
    assert.equal(reason, "Invalid");
    for (const field of ["spec.containers[0].name", "spec.containers[1].image", "spec.restartPolicy"]) {
      assert.ok(message.includes(field), `${field} in ${message}`);
    }
  });

  test("what a namespace's quota does not allow is refused, and says what is used and limited", async () => {
    const namespace = await of.namespace("quota-team");
    const quota = { metadata: { name: "few" }, spec: { hard: { pods: "1", "requests.nvidia.com/gpu": "4" } } };
    ok(await create(of.admin, "resourcequotas", quota, namespace));
    const counted = async () => objectAt(objectAt(await of.get("resourcequotas", "few", namespace), "status"), "used");
    await until(async () => (await counted())["pods"] === "0", "the quota is counted");
    const one = gang(namespace);
    assert.deepEqual(await of.actions().act(one.createAnchor, signal), done);
    assert.deepEqual(await of.actions().act(one.createPod(0), signal), done);
    const { reason, message } = await refused(one.createPod(1));
    assert.equal(reason, "Forbidden");
    assert.match(message, /exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1/);
  });

  test("a namespace that is absent is made only where that is allowed", async () => {
    const one = gang("team-new");
    assert.equal((await refused(one.createAnchor)).reason, "NotFound");
    assert.deepEqual(await of.actions({ createNamespaces: true }).act(one.createAnchor, signal), done);
  });

  test("nothing is made in a namespace that is being deleted", async () => {
    const namespace = await of.namespace("team-leaving");
    const hold = { metadata: { name: "holds", finalizers: ["example.com/hold"] } };
    ok(await create(of.admin, "configmaps", hold, namespace));
    ok(await of.admin.request({ method: "DELETE", path: `/api/v1/namespaces/${namespace}` }));
    const { reason, message } = await refused(gang(namespace).createAnchor);
    assert.equal(reason, "Forbidden");
    assert.match(message, /is being terminated/);
    const path = `/api/v1/namespaces/${namespace}/configmaps/holds`;
    ok(await of.admin.request({ method: "PATCH", path, body: { metadata: { finalizers: null } } }));
  });

  test("a throttled write keeps the server's reason and is done when it is tried again", async () => {
    let throttling = true;
    const proxy = await of.proxy(() => (throttling ? { status: 429, headers: { "retry-after": "1" } } : "pass"));
    const client = clientOf(proxy.kubeconfig);
    const actions = of.actions({ client });
    const one = gang();
    const outcome = await actions.act(one.createAnchor, signal);
    assert.equal(outcome.kind === "failed" && outcome.reason, "TooManyRequests");
    throttling = false;
    assert.deepEqual(await actions.act(one.createAnchor, signal), done);
    await client.close();
    await proxy.close();
  });

  test("an answer that was lost is found to be done when the action is tried again", async () => {
    let lose = true;
    const proxy = await of.proxy(({ method }) => (method === "POST" && lose ? "lose" : "pass"));
    const client = clientOf(proxy.kubeconfig);
    const actions = of.actions({ client });
    const one = gang();
    const outcome = await actions.act(one.createAnchor, signal);
    assert.equal(outcome.kind === "failed" && outcome.reason, "Unreachable");
    lose = false;
    assert.deepEqual(await actions.act(one.createAnchor, signal), already);
    await client.close();
    await proxy.close();
  });
}

const MANY = 1_100;

async function addMany(of: Scene, group: string): Promise<void> {
  const names = Array.from({ length: MANY }, (_, index) => `${group}-${index}`);
  for (const result of await Promise.all(
    names.map((name) => create(of.admin, "configmaps", configMap(name, { group }))),
  )) {
    ok(result);
  }
}

function reflect(of: Scene, kubeconfig: string, group: string) {
  const client = clientOf(kubeconfig);
  const reflector = new Reflector<{ name: string; version: string }>({
    client,
    path: "/api/v1/configmaps",
    labelSelector: `group=${group}`,
    clock,
    random: seededRandom(7),
    silenceMsMax: 150_000,
    keep: (object) => ({ name: nameOf(object), version: versionOf(object) }),
    jobOf: () => null,
    onChange: () => undefined,
    onHealth: () => undefined,
    onError: () => undefined,
  });
  reflector.start();
  const names = () => [...reflector.store.values()].map(({ name }) => name).sort();
  const add = async (name: string) => ok(await create(of.admin, "configmaps", configMap(name, { group })));
  const close = async () => {
    await reflector.close();
    await client.close();
  };
  return { reflector, names, add, close };
}

function lists(of: Scene): void {
  const page = (query: Record<string, string>) =>
    of.adapter.request({ method: "GET", path: "/api/v1/configmaps", query: { labelSelector: "group=many", ...query } });

  test("a long list comes in pages of one moment, and a page of a moment that is forgotten is refused", async () => {
    await addMany(of, "many");
    const first = ok(await page({ limit: "500" }));
    const metadata = objectAt(first, "metadata");
    ok(await create(of.admin, "configmaps", configMap("many-late", { group: "many" })));
    const second = ok(await page({ limit: "1000", continue: stringAt(metadata, "continue") ?? "" }));
    assert.equal(arrayAt(first, "items").length + arrayAt(second, "items").length, MANY);
    assert.equal(versionOf(second), versionOf(first));
    assert.equal(stringAt(objectAt(second, "metadata"), "continue"), undefined);
    await of.subject.forget();
    const late = await page({ limit: "1000", continue: stringAt(metadata, "continue") ?? "" });
    assert.equal(late.kind, "failed");
    if (late.kind === "failed") assert.deepEqual([late.status, late.reason], [410, "Expired"]);
    const { reflector, names, close } = reflect(of, of.subject.adapterKubeconfig, "many");
    await until(() => reflector.synced, "synced");
    assert.equal(names().length, MANY + 1);
    await close();
  });
}

function watches(of: Scene): void {
  const watch = async (query: Record<string, string>) => {
    const opened = await of.adapter.watch(
      { path: "/api/v1/configmaps", query: { allowWatchBookmarks: "true", ...query }, silenceMsMax: 60_000 },
      signal,
    );
    if (opened.kind === "failed") return { refused: opened, events: [] };
    const events: JsonObject[] = [];
    for await (const event of opened.events) events.push(event);
    return { refused: null, events };
  };
  const versionNow = async () => {
    const query = { limit: "1", labelSelector: "group=nobody" };
    return versionOf(ok(await of.adapter.request({ method: "GET", path: "/api/v1/configmaps", query })));
  };

  test("a watch ends when its time is over, after a bookmark that passes what does not concern it", async () => {
    const from = await versionNow();
    const watching = watch({ resourceVersion: from, timeoutSeconds: "4", labelSelector: "group=watched" });
    const other = versionOf(ok(await create(of.admin, "configmaps", configMap("of-no-concern"))));
    const seen = versionOf(ok(await create(of.admin, "configmaps", configMap("watched", { group: "watched" }))));
    const { events } = await watching;
    const types = events.map((event) => stringAt(event, "type"));
    assert.deepEqual(types.slice(0, 1), ["ADDED"]);
    assert.ok(types.slice(1).length > 0 && types.slice(1).every((type) => type === "BOOKMARK"), types.join());
    assert.equal(versionOf(objectAt(events[0], "object")), seen);
    const marked = Number(versionOf(objectAt(events.at(-1), "object")));
    assert.ok(marked >= Number(seen) && Number(seen) > Number(other));
  });

  test("an object that comes to match is added, one that ceases to is deleted", async () => {
    const from = await versionNow();
    const watching = watch({ resourceVersion: from, timeoutSeconds: "4", labelSelector: "group=turning" });
    const path = "/api/v1/namespaces/default/configmaps/turning";
    ok(await create(of.admin, "configmaps", configMap("turning")));
    for (const group of ["turning", "turning", "elsewhere"]) {
      const body = { metadata: { labels: { group } }, data: { at: group } };
      ok(await of.admin.request({ method: "PATCH", path, body }));
    }
    ok(await of.admin.request({ method: "DELETE", path }));
    const { events } = await watching;
    const said = events.filter((event) => stringAt(event, "type") !== "BOOKMARK");
    assert.deepEqual(
      said.map((event) => stringAt(event, "type")),
      ["ADDED", "DELETED"],
    );
  });

  test("a watch from a version that is forgotten says 410, and the reflector lists anew", async () => {
    let cut = false;
    const proxy = await of.proxy(({ query }) => (query.has("watch") && cut ? "cut" : "pass"));
    const { reflector, names, add, close } = reflect(of, proxy.kubeconfig, "forgotten");
    await until(() => reflector.synced, "synced");
    await add("forgotten-one");
    await until(() => names().length === 1, "heard of the first");
    const from = await versionNow();
    cut = true;
    proxy.cutAll();
    await add("forgotten-two");
    await of.subject.forget();
    const { refused, events } = await watch({ resourceVersion: from, timeoutSeconds: "4" });
    const status = refused ?? objectAt(events[0], "object");
    assert.equal("status" in status && refused !== null ? refused.status : (status as JsonObject)["code"], 410);
    assert.equal(status.reason, "Expired");
    cut = false;
    await until(() => names().length === 2, "heard of the second");
    const listed = proxy.seen.filter(({ query }) => !query.has("watch")).length;
    assert.equal(listed, 2, "listed once more");
    await close();
    await proxy.close();
  });

  test("a watch that is cut goes on from the last version heard, without a list", async () => {
    const proxy = await of.proxy(() => "pass");
    const { names, add, close } = reflect(of, proxy.kubeconfig, "cut");
    await until(() => proxy.seen.some(({ query }) => query.has("watch")), "watching");
    await add("cut-one");
    await until(() => names().length === 1, "heard of the first");
    proxy.cutAll();
    await add("cut-two");
    await until(() => names().length === 2, "heard of the second");
    assert.equal(proxy.seen.filter(({ query }) => !query.has("watch")).length, 1, "one list in all");
    await close();
    await proxy.close();
  });

  test("a throttled list waits as long as the server asks, and then succeeds", async () => {
    let refusals = 0;
    const proxy = await of.proxy(({ query }) =>
      query.has("watch") || refusals++ > 0 ? "pass" : { status: 429, headers: { "retry-after": "1" } },
    );
    const { reflector, close } = reflect(of, proxy.kubeconfig, "throttled");
    await until(() => reflector.synced, "synced after the refusal");
    assert.equal(reflector.failingForMs, 0, "a server that throttles is there");
    await close();
    await proxy.close();
  });
}

const POD_GROUPS = "/apis/scheduling.example.com/v1alpha1/podgroups";

const POD_GROUP_CRD = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "podgroups.scheduling.example.com" },
  spec: {
    group: "scheduling.example.com",
    scope: "Namespaced",
    names: { plural: "podgroups", singular: "podgroup", kind: "PodGroup", listKind: "PodGroupList" },
    versions: [
      {
        name: "v1alpha1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};

function customResources(of: Scene): { readonly isCollected: () => Promise<void> } {
  const one = gang();
  const list = () => of.admin.request({ method: "GET", path: POD_GROUPS });

  test("a kind that the cluster does not know is a 404, and is served once its definition is applied", async () => {
    const before = await list();
    assert.equal(before.kind === "failed" && before.status, 404);
    assert.equal(before.kind === "failed" && before.reason, "NotFound");
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    ok(await of.admin.request({ method: "POST", path, body: POD_GROUP_CRD }));
    await until(async () => (await list()).kind === "ok", "its list is served");
    const { createAnchor, anchor, job, labels } = one;
    await of.actions().act(createAnchor, signal);
    const uid = uidOf(await of.get("configmaps", anchor));
    const owner = { apiVersion: "v1", kind: "ConfigMap", name: anchor, uid, controller: true };
    const group = {
      apiVersion: "scheduling.example.com/v1alpha1",
      kind: "PodGroup",
      metadata: { name: job, labels, ownerReferences: [owner] },
      spec: { minMember: 4 },
    };
    const collection = "/apis/scheduling.example.com/v1alpha1/namespaces/default/podgroups";
    const post = () => patiently(() => of.admin.request({ method: "POST", path: collection, body: group }));
    ok(await post());
    const again = await post();
    assert.equal(again.kind === "failed" && again.reason, "AlreadyExists");
    const [item] = arrayAt(ok(await patiently(list)), "items");
    assert.equal(nameOf(item as JsonObject), job);
    assert.deepEqual((item as JsonObject)["spec"], { minMember: 4 });
  });

  return {
    async isCollected() {
      const uid = uidOf(await of.get("configmaps", one.anchor));
      assert.deepEqual(await of.actions().act(one.deleteAnchor(uid), signal), done);
      await until(async () => arrayAt(ok(await patiently(list)), "items").length === 0, "collected", 60_000);
    },
  };
}

const gpusFree = (report: CapacityReport | undefined) =>
  (report?.capacity?.nodes ?? []).reduce((sum, { free }) => sum + (free["nvidia.com/gpu"] ?? 0) / 1000, 0);

function gpuPod(name: string, labels: Readonly<Record<string, string>>, gpus: number): JsonObject {
  const resources = { limits: { "nvidia.com/gpu": String(gpus) } };
  return {
    metadata: { name, labels, annotations: { "sim.gangway.dev/run": "forever" } },
    spec: { containers: [{ name: "main", image: "busybox:1.36", resources }], terminationGracePeriodSeconds: 1 },
  };
}

function capacity(of: Scene): void {
  const remove = async (path: string) => ok(await of.admin.request({ method: "DELETE", path }));

  test("capacity follows nodes, cordons, and pods of ours and of strangers", async () => {
    const { cluster, changed, reports } = of.connect();
    cluster.start();
    const free = (gpus: number) => until(() => gpusFree(reports.at(-1)) === gpus, `${gpus} free`);
    await free(16);
    const labels = { ...gang().labels, [LABEL.replicaType]: "worker", [LABEL.replicaIndex]: "0" };
    const jobUid = labels[LABEL.jobUid] ?? "";
    ok(await create(of.admin, "pods", gpuPod("capacity-ours", labels, 3)));
    ok(await create(of.admin, "pods", gpuPod("capacity-strange", {}, 2)));
    await free(11);
    await until(() => cluster.observe(jobUid).pods[0]?.ready === true, "ready is seen");
    assert.deepEqual(
      reports.at(-1)?.capacity?.seen.filter((seen) => seen.jobUid === jobUid),
      [{ jobUid, admission: 1, role: "worker", index: 0 }],
    );
    assert.ok(changed.includes(jobUid));
    await remove("/api/v1/namespaces/default/pods/capacity-ours");
    await remove("/api/v1/namespaces/default/pods/capacity-strange");
    await free(16);
    const body = nodeManifest({
      name: "node-new",
      labels: {},
      allocatable: { cpu: "8", pods: "10", "nvidia.com/gpu": "4" },
    });
    ok(await of.admin.request({ method: "POST", path: "/api/v1/nodes", body }));
    await free(20);
    ok(
      await of.admin.request({
        method: "PATCH",
        path: "/api/v1/nodes/node-new",
        body: { spec: { unschedulable: true } },
      }),
    );
    const cordoned = () => reports.at(-1)?.capacity?.nodes.find(({ name }) => name === "node-new")?.unschedulable;
    await until(() => cordoned() === true, "the cordon is seen");
    await remove("/api/v1/nodes/node-new");
    await free(16);
    await cluster.close();
  });

  test("what the cluster itself says of a job agrees with what was heard of it", async () => {
    const { cluster } = of.connect();
    cluster.start();
    const { createAnchor, createPod, createService, uid } = gang();
    for (const action of [createAnchor, createPod(), createPod(1), createService]) {
      assert.deepEqual(await of.actions().act(action, signal), done);
    }
    const looked = await cluster.look(uid, signal);
    assert.deepEqual([looked?.pods.length, looked?.services.length, looked?.anchors.length], [2, 1, 1]);
    await until(() => cluster.observe(uid).pods.length === 2, "heard of the pods");
    await cluster.close();
  });
}
