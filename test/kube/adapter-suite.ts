/**
 * The contract of the cluster adapter with any API server. The same tests run on the simulated cluster and on real
 * ones.
 */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { Actions } from "../../src/adapters/cluster/actions.ts";
import type { CapacityReport } from "../../src/adapters/cluster/capacity-observer.ts";
import type { KubeClient, KubeResult } from "../../src/adapters/cluster/client.ts";
import { type Cluster, connectCluster } from "../../src/adapters/cluster/cluster.ts";
import { listJob } from "../../src/adapters/cluster/list-job.ts";
import { Reflector } from "../../src/adapters/cluster/reflector.ts";
import { defaultSpec } from "../../src/core/job/defaults.ts";
import { LABEL } from "../../src/core/job/labels.ts";
import { mpiJob } from "../../src/core/kinds/kubeflow/mpi-job.ts";
import { buildPart } from "../../src/core/pods/build-part.ts";
import { REQUESTED_SPEC_ANNOTATION } from "../../src/core/pods/pod-group.ts";
import { controllerUid, podView } from "../../src/core/pods/pod-view.ts";
import { claimVerdict } from "../../src/core/reconcile/claim.ts";
import type { Action } from "../../src/core/reconcile/decision.ts";
import { sweep } from "../../src/core/reconcile/reconcile.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { arrayAt, isJsonObject, objectAt, stringAt } from "../../src/runtime/json.ts";
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
import { podGroupDefinition } from "./pod-groups.ts";
import { nodeManifest, type Subject } from "./subject.ts";

const signal = new AbortController().signal;
const done = { kind: "done" } as const;
const already = { kind: "already" } as const;

const nameOf = (object: JsonObject | null) => stringAt(objectAt(object, "metadata"), "name") ?? "";
const uidOf = (object: JsonObject | null) => stringAt(objectAt(object, "metadata"), "uid") ?? "";
const versionOf = (object: JsonObject | null) => stringAt(objectAt(object, "metadata"), "resourceVersion") ?? "";

function ok(result: KubeResult): JsonObject {
  assert.equal(result.kind, "ok", result.kind === "failed" ? result.message : "");
  return result.kind === "ok" ? result.object : {};
}

/** Registers the whole suite for one kind of server. */
export function adapterSuite(name: string, start: () => Promise<Subject>): void {
  suite(`the cluster adapter on ${name}`, () => {
    const of = new Scene(start);
    before(() => of.open());
    after(() => of.close());
    const group = customResources(of);
    podGroups(of);
    claims(of);
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

/** Asks again while the server asks us to wait, as a server does that is preparing the storage of a new kind. */
async function patiently(ask: () => Promise<KubeResult>): Promise<KubeResult> {
  let answer = await ask();
  await until(async () => {
    if (answer.kind === "ok" || ![429, 503].includes(answer.status)) return true;
    answer = await ask();
    return false;
  }, "the server has time");
  return answer;
}

/** The API server under test, an administrator's client of it, and the adapter's client. */
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

  /** A namespace with the objects that Kubernetes puts into it, so that pods can be created there. */
  async namespace(name: string): Promise<string> {
    ok(await this.admin.request({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name } } }));
    await until(async () => (await this.get("serviceaccounts", "default", name)) !== null, "its account is there");
    return name;
  }

  proxy(treat: Parameters<typeof startProxy>[1]) {
    return startProxy(this.subject.url, treat, this.subject);
  }

  /** A connected cluster, and everything that it reports. */
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

  test("the parts of an MPIJob's launcher belong to the anchor, and creating them twice is harmless", async () => {
    const actions = of.actions();
    const { createAnchor, anchor, job, uid, labels } = gang();
    await actions.act(createAnchor, signal);
    const parts = mpiParts(job, uid, 2);
    assert.equal(parts.length, 4);
    for (const part of parts) {
      const metadata = { ...objectAt(part, "metadata"), labels };
      const manifest = { ...part, metadata };
      const action = { cluster: "sim", namespace: "default", kind: "createPart", anchor, manifest } as const;
      assert.deepEqual(await actions.act(action, signal), done, `${part["kind"]}`);
      assert.deepEqual(await actions.act(action, signal), already, `${part["kind"]}`);
    }
    const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/${job}-launcher`;
    const role = ok(await of.admin.request({ method: "GET", path }));
    assert.equal(controllerUid(objectAt(role, "metadata")), uidOf(await of.get("configmaps", anchor)));
    assert.deepEqual(arrayAt(arrayAt(role, "rules")[1], "resourceNames"), [`${job}-worker-0`, `${job}-worker-1`]);
  });

  test("an MPIJob's launcher parts follow the members, once for each version; foreign objects stay", async () => {
    const actions = of.actions();
    const { createAnchor, anchor, job, uid } = gang();
    await actions.act(createAnchor, signal);
    const owner = { job: { uid, name: job, namespace: "default" }, operatorName: "mpijob-controller", admission: 1 };
    const all = async (kind: "createPart" | "updatePart", workers: number, version: number) => {
      const outcomes: [unknown, string][] = [];
      for (const part of mpiParts(job, uid, workers)) {
        const manifest = buildPart({ ...owner, config: { installation: INSTALLATION } }, part, version);
        const outcome = await actions.act({ cluster: "sim", namespace: "default", kind, anchor, manifest }, signal);
        outcomes.push([part["kind"], outcome.kind]);
      }
      return Object.fromEntries(outcomes);
    };
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/${job}-launcher`;
    const seen = async () => {
      const role = ok(await of.admin.request({ method: "GET", path: rbac }));
      const place = { cluster: "one", installation: INSTALLATION, jobUid: uid };
      const looked = await listJob(of.adapter, place, signal);
      const map = looked?.configMaps.find(({ name }) => name === `${job}-config`);
      const allowed = arrayAt(arrayAt(role, "rules")[1], "resourceNames").length;
      return { allowed, hosts: map?.data.match(/slots=1/g)?.length ?? 0, role: versionOf(role), uid: map?.uid };
    };
    const unchanged = { ConfigMap: "already", ServiceAccount: "already", Role: "already", RoleBinding: "already" };
    const changed = { ...unchanged, ConfigMap: "done", Role: "done" };
    await all("createPart", 2, 3);
    assert.deepEqual(await all("updatePart", 3, 5), changed);
    const grown = await seen();
    assert.deepEqual([grown.allowed, grown.hosts], [3, 3]);
    assert.deepEqual(await all("updatePart", 3, 6), unchanged);
    assert.deepEqual(await all("updatePart", 2, 4), unchanged, "an older record has nothing to say any more");
    assert.deepEqual(await seen(), grown, "nothing is written where nothing changes");
    assert.deepEqual(await all("createPart", 1, 7), unchanged, "what is there is there, and brought up to date");
    assert.deepEqual([(await seen()).allowed, (await seen()).hosts], [1, 1]);
    const path = `/api/v1/namespaces/default/configmaps/${job}-config`;
    ok(
      await of.admin.request({
        method: "PATCH",
        path,
        body: { data: { more: "x" }, metadata: { ownerReferences: [] } },
      }),
    );
    assert.equal((await all("updatePart", 1, 8))["ConfigMap"], "done");
    const put = await of.get("configmaps", `${job}-config`);
    assert.equal(objectAt(put, "data")["more"], undefined, "what is not wanted goes");
    assert.equal(controllerUid(objectAt(put, "metadata")), uidOf(await of.get("configmaps", anchor)), "adopted again");
    ok(await of.admin.request({ method: "DELETE", path }));
    assert.equal((await all("updatePart", 2, 9))["ConfigMap"], "done", "made where it is gone");
    assert.deepEqual([(await seen()).allowed, (await seen()).hosts], [2, 2]);
    const stranger = { metadata: { labels: { [LABEL.jobUid]: "another" } } };
    ok(await of.admin.request({ method: "PATCH", path: rbac, body: stranger }));
    assert.equal((await all("updatePart", 3, 10))["Role"], "failed");
    assert.equal((await seen()).allowed, 2);
  });

  test("creating an object of ours that exists is already done, also for a worker that has not seen it", async () => {
    const { createAnchor, createPod, createService } = gang();
    const first = of.actions();
    for (const action of [createAnchor, createPod(), createService]) await first.act(action, signal);
    const second = of.actions();
    for (const action of [createAnchor, createPod(), createService]) {
      assert.deepEqual(await second.act(action, signal), already, action.kind);
    }
  });

  test("an object without controller that has our job and admission is adopted", async () => {
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

  test("a pod that another object controls is refused although its labels are ours", async () => {
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

  test("an anchor is refused if a foreign object has its name", async () => {
    const actions = of.actions();
    const { createAnchor, createPod, anchor, job } = gang();
    ok(await create(of.admin, "configmaps", configMap(anchor)));
    const outcome = await actions.act(createAnchor, signal);
    assert.equal(outcome.kind === "failed" && outcome.reason, "AlreadyExists");
    const pod = await actions.act(createPod(), signal);
    assert.equal(pod.kind === "failed" && pod.reason, "AnchorMissing");
    assert.equal(await of.get("pods", `${job}-worker-0`), null);
  });

  test("nothing is created under an anchor that does not exist or is being deleted", async () => {
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
  test("only the object with the given uid is deleted", async () => {
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

  test("objects of an anchor are collected after it, also those that a late worker creates under its uid", async () => {
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

  test("an invalid object is refused with each wrong field", async () => {
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

  test("a pod beyond its namespace's quota is refused with the use and the limit", async () => {
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

  test("a missing namespace is created only if that is allowed", async () => {
    const one = gang("team-new");
    assert.equal((await refused(one.createAnchor)).reason, "NotFound");
    assert.deepEqual(await of.actions({ createNamespaces: true }).act(one.createAnchor, signal), done);
  });

  test("nothing is created in a namespace that is being deleted", async () => {
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

  test("an action whose answer was lost turns out to be done when it is tried again", async () => {
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
  // Not all at once: a server that is busy would leave the last ones without an answer for too long.
  for (let at = 0; at < MANY; at += 100) {
    const some = names.slice(at, at + 100);
    for (const made of await Promise.all(
      some.map((name) => create(of.admin, "configmaps", configMap(name, { group }))),
    ))
      ok(made);
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

  test("a long list comes in pages of one version, and a page of a forgotten version is refused", async () => {
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

  test("a watch ends when its time is over, after a bookmark beyond changes of other objects", async () => {
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

  test("an object that begins to match is added, and one that no longer matches is deleted", async () => {
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

  test("a watch from a forgotten version fails with 410, and the reflector lists again", async () => {
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

  test("a watch that is cut continues from the last version, without a list", async () => {
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
      await until(async () => arrayAt(ok(await patiently(list)), "items").length === 0, "collected");
    },
  };
}

/** PodGroups are handled like services: owned by the anchor, found by their labels, deleted by uid. */
function podGroups(of: Scene): void {
  test("a PodGroup is created, and only the object that was seen is changed and deleted", async () => {
    const apiVersion = "scheduling.x-k8s.io/v1alpha1";
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const [group = "", version = ""] = apiVersion.split("/");
    ok(await of.admin.request({ method: "POST", path, body: podGroupDefinition(group, version) }));
    const collection = `/apis/${apiVersion}/namespaces/default/podgroups`;
    const list = () => of.admin.request({ method: "GET", path: collection });
    await until(async () => (await list()).kind === "ok", "its list is served");
    const { createAnchor, anchor, job, labels, uid: jobUid } = gang();
    const actions = of.actions();
    await actions.act(createAnchor, signal);
    const place = { cluster: "sim", namespace: "default" };
    const manifest = (spec: JsonObject): JsonObject => {
      const annotations = { [REQUESTED_SPEC_ANNOTATION]: JSON.stringify(spec) };
      return { apiVersion, kind: "PodGroup", metadata: { name: job, labels, annotations }, spec };
    };
    const asked = { minMember: 2, scheduleTimeoutSeconds: 60 };
    const creation = { ...place, kind: "createPodGroup", anchor, manifest: manifest(asked) } satisfies Action;
    await until(async () => (await actions.act(creation, signal)).kind !== "failed", "its storage is made");
    assert.deepEqual(await actions.act(creation, signal), already);
    const seen = async () => {
      const place = { cluster: "one", installation: INSTALLATION, jobUid, scheduler: "scheduler-plugins" } as const;
      return (await listJob(of.adapter, place, signal))?.gang?.groups ?? [];
    };
    const [made] = await seen();
    assert.equal(made?.controllerUid, uidOf(await of.get("configmaps", anchor)));
    assert.equal(made?.requestedSpec, JSON.stringify(asked));
    const change = { ...place, kind: "updatePodGroup", name: job, manifest: manifest({ minMember: 3 }) } as const;
    const stranger = "00000000-0000-0000-0000-000000000000";
    assert.equal((await actions.act({ ...change, uid: stranger }, signal)).kind, "failed");
    assert.deepEqual(await actions.act({ ...change, uid: made?.uid ?? "" }, signal), done);
    const [item] = arrayAt(ok(await list()), "items");
    assert.deepEqual(objectAt(item, "spec"), { minMember: 3 }, "what is not asked for any more is gone");
    const deletion = { ...place, kind: "deletePodGroup", name: job, apiVersion } as const;
    assert.deepEqual(await actions.act({ ...deletion, uid: stranger }, signal), already);
    assert.equal((await seen()).length, 1);
    assert.deepEqual(await actions.act({ ...deletion, uid: made?.uid ?? "" }, signal), done);
    assert.deepEqual(await seen(), []);
  });
}

/** The parts of an MPIJob, from its kind. */
function mpiParts(jobName: string, jobUid: string, workers: number): readonly JsonObject[] {
  const template = { spec: { containers: [{ name: "mpi", image: "i" }] } };
  const sent = { kind: "MPIJob", replicaSpecs: { Launcher: { template }, Worker: { replicas: workers, template } } };
  const context = { kind: mpiJob, labels: {}, namespaceQueue: null, classPriority: null };
  return mpiJob.objects({
    jobName,
    jobUid,
    namespace: "default",
    admission: 1,
    spec: defaultSpec(sent, context),
    members: { Launcher: 1, Worker: workers },
    clusterDomain: "",
    initImage: "i",
    kubectlImage: "i",
  });
}

/** A pod as Kubeflow's operator would create it for the same job: our labels of its domain, and its own owner. */
function operatorsPod(name: string, jobName: string, owner: JsonObject | null): JsonObject {
  const labels = {
    [LABEL.jobName]: jobName,
    [LABEL.operatorName]: "pytorchjob-controller",
    [LABEL.replicaType]: "worker",
    [LABEL.replicaIndex]: "0",
  };
  const reference = { apiVersion: "v1", kind: "ConfigMap", name: nameOf(owner), uid: uidOf(owner), controller: true };
  const ownerReferences = owner === null ? [] : [reference];
  const containers = [{ name: "main", image: "busybox:1.36" }];
  return { metadata: { name, labels, ownerReferences }, spec: { containers, terminationGracePeriodSeconds: 1 } };
}

function claims(of: Scene): void {
  const at = { cluster: "sim", namespace: "default", object: "pod" } as const;
  const controllers = (pod: JsonObject | null) =>
    arrayAt(objectAt(pod, "metadata"), "ownerReferences").map((owner) => stringAt(owner, "uid"));

  test("only the pod that was seen is adopted and released, and other owners stay", async () => {
    const actions = of.actions();
    const { createAnchor, createPod, anchor, job } = gang();
    await actions.act(createAnchor, signal);
    const anchorUid = uidOf(await of.get("configmaps", anchor));
    const other = await create(of.admin, "configmaps", configMap(`${job}-other`));
    const owner = { apiVersion: "v1", kind: "ConfigMap", name: `${job}-other`, uid: uidOf(ok(other)) };
    const { manifest } = createPod(0);
    ok(await create(of.admin, "pods", { ...manifest, metadata: { ...manifest.metadata, ownerReferences: [owner] } }));
    const name = `${job}-worker-0`;
    const uid = uidOf(await of.get("pods", name));
    const claim = { ...at, name, uid, anchor: { name: anchor, uid: anchorUid } };
    assert.deepEqual(await actions.claim({ ...claim, kind: "adopt" }, signal), done);
    assert.deepEqual(controllers(await of.get("pods", name)).sort(), [owner.uid, anchorUid].sort());
    assert.deepEqual(await actions.claim({ ...claim, kind: "adopt" }, signal), already);
    const successor = await actions.claim({ ...claim, kind: "release", uid: "another" }, signal);
    assert.equal(successor.kind === "failed" && successor.reason, "NotFound");
    assert.deepEqual(await actions.claim({ ...claim, kind: "release" }, signal), done);
    assert.deepEqual(controllers(await of.get("pods", name)), [owner.uid]);
    const gone = await actions.claim({ ...claim, kind: "adopt", name: "nobody" }, signal);
    assert.equal(gone.kind === "failed" && gone.reason, "NotFound");
    const place = { namespace: "default", name: anchor, uid: anchorUid };
    assert.equal(await actions.anchors.lives(place, signal), true);
    assert.equal(await actions.anchors.lives({ ...place, uid: "another" }, signal), false);
  });

  test("a pod on a lost node is deleted without waiting for the node", async () => {
    const actions = of.actions();
    const { createAnchor, createPod, deletePod, job } = gang();
    await actions.act(createAnchor, signal);
    const { manifest } = createPod(0);
    const spec = { ...manifest.spec, terminationGracePeriodSeconds: 600 };
    await actions.act({ ...createPod(0), manifest: { ...manifest, spec } }, signal);
    const name = `${job}-worker-0`;
    const uid = uidOf(await of.get("pods", name));
    assert.deepEqual(await actions.act({ ...deletePod("another"), force: true }, signal), already);
    assert.notEqual(await of.get("pods", name), null);
    assert.deepEqual(await actions.act({ ...deletePod(uid), force: true }, signal), done);
    await until(async () => (await of.get("pods", name)) === null, "it is gone");
  });

  test("a training operator in the same cluster and Gangway leave each other's pods alone", async () => {
    const actions = of.actions();
    const { createAnchor, createPod, anchor, job, uid: jobUid, labels } = gang();
    await actions.act(createAnchor, signal);
    const shared = { [LABEL.jobName]: job, [LABEL.operatorName]: "pytorchjob-controller" };
    const { manifest } = createPod(0);
    const metadata = { ...manifest.metadata, labels: { ...manifest.metadata.labels, ...shared } };
    assert.deepEqual(await actions.act({ ...createPod(0), manifest: { ...manifest, metadata } }, signal), done);
    const theirJob = ok(await create(of.admin, "configmaps", configMap(`${job}-theirs`)));
    ok(await create(of.admin, "pods", operatorsPod(`${job}-worker-1`, job, theirJob)));
    ok(await create(of.admin, "pods", operatorsPod(`${job}-worker-2`, job, null)));
    const query = {
      labelSelector: Object.entries(shared)
        .map(([label, value]) => `${label}=${value}`)
        .join(","),
    };
    const path = "/api/v1/namespaces/default/pods";
    const listed = arrayAt(ok(await of.admin.request({ method: "GET", path, query })), "items").filter(isJsonObject);
    assert.equal(listed.length, 3, "it sees our pod by the labels that we share");
    const theirs = { anchor: { uid: uidOf(theirJob), deleting: false }, selector: shared };
    const ours = { anchor: { uid: uidOf(await of.get("configmaps", anchor)), deleting: false }, selector: labels };
    const verdicts = listed.map((pod) => [
      nameOf(pod),
      claimVerdict(podView(pod), theirs),
      claimVerdict(podView(pod), ours),
    ]);
    assert.deepEqual(verdicts.sort(), [
      [`${job}-worker-0`, "leave", "owned"],
      [`${job}-worker-1`, "owned", "leave"],
      [`${job}-worker-2`, "adopt", "leave"],
    ]);
    const place = { cluster: "one", installation: INSTALLATION, jobUid };
    const seen = await listJob(of.adapter, place, signal);
    assert.deepEqual(
      seen?.pods.map(({ name }) => name),
      [`${job}-worker-0`],
    );
    for (const action of sweep(seen === null ? [] : [seen], { uid: jobUid, namespace: "default" })) {
      assert.notEqual((await actions.act({ ...action, cluster: "sim" }, signal)).kind, "failed");
    }
    await until(async () => (await of.get("pods", `${job}-worker-0`)) === null, "ours is deleted");
    const left = [await of.get("pods", `${job}-worker-1`), await of.get("pods", `${job}-worker-2`)];
    assert.ok(left.every((pod) => objectAt(pod, "metadata")["deletionTimestamp"] === undefined && pod !== null));
  });
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

  test("capacity follows nodes, cordons, our pods and foreign pods", async () => {
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

  test("a job's listed objects are the same as those that the watches show", async () => {
    const { cluster } = of.connect();
    cluster.start();
    const { createAnchor, createPod, createService, uid } = gang();
    for (const action of [createAnchor, createPod(), createPod(1), createService]) {
      assert.deepEqual(await of.actions().act(action, signal), done);
    }
    const looked = await cluster.listJob(uid, signal);
    assert.deepEqual([looked?.pods.length, looked?.services.length, looked?.configMaps.length], [2, 1, 1]);
    await until(() => cluster.observe(uid).pods.length === 2, "heard of the pods");
    await cluster.close();
  });
}
