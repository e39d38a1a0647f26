import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Actions } from "../../src/adapters/cluster/actions.ts";
import type { ApiResult, KubeClient } from "../../src/adapters/cluster/client.ts";
import type { SimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import { LABEL } from "../../src/core/job/labels.ts";
import { controllerUid } from "../../src/core/pods/pod-view.ts";
import type { Action } from "../../src/core/reconcile/decision.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { arrayAt, objectAt, stringAt } from "../../src/runtime/json.ts";
import {
  clientOf,
  clock,
  create,
  deadServer,
  gpuNodes,
  INSTALLATION,
  kubeconfigOf,
  startProxy,
  startSim,
} from "./harness.ts";

let sim: SimCluster;
let client: KubeClient;
const signal = new AbortController().signal;

before(async () => {
  sim = await startSim(gpuNodes(4));
  client = clientOf(sim.kubeconfig());
});

after(async () => {
  await client.close();
  await sim.close();
});

function actionsOn(kube: KubeClient, options: { createNamespaces?: boolean; writeBudget?: number } = {}): Actions {
  return new Actions({
    client: kube,
    clock,
    installation: INSTALLATION,
    seen: () => undefined,
    writeBudget: options.writeBudget ?? 50,
    createNamespaces: options.createNamespaces ?? false,
  });
}

let counter = 0;

/** A job's objects under names of their own. */
function gang(namespace = "default") {
  const job = `job-${counter++}`;
  const labels = { [LABEL.jobUid]: `uid-of-${job}`, [LABEL.admission]: "1", [LABEL.installation]: INSTALLATION };
  const anchor = `${job}-admission-1`;
  const base = { cluster: "sim", namespace };
  const metadata = (name: string) => ({ name, labels });
  return {
    job,
    labels,
    anchor,
    createAnchor: {
      ...base,
      kind: "createAnchor",
      manifest: { apiVersion: "v1", kind: "ConfigMap", metadata: metadata(anchor) },
    } satisfies Action,
    createPod: (index = 0) =>
      ({
        ...base,
        kind: "createPod",
        anchor,
        manifest: {
          apiVersion: "v1",
          kind: "Pod",
          metadata: metadata(`${job}-worker-${index}`),
          spec: { containers: [{ name: "main", image: "busybox", unknownToThisClient: true }] },
        },
      }) satisfies Action,
    createService: {
      ...base,
      kind: "createService",
      anchor,
      manifest: {
        apiVersion: "v1",
        kind: "Service",
        metadata: metadata(`${job}-worker-0`),
        spec: { clusterIP: "None", selector: labels, ports: [{ port: 23456 }] },
      },
    } satisfies Action,
    deletePod: (uid: string) => ({ ...base, kind: "deletePod", name: `${job}-worker-0`, uid }) satisfies Action,
  };
}

async function get(resource: string, name: string, namespace = "default"): Promise<JsonObject | null> {
  const got = await client.request({ method: "GET", path: `/api/v1/namespaces/${namespace}/${resource}/${name}` });
  return got.kind === "ok" ? got.object : null;
}

const uidOf = (object: JsonObject | null) => stringAt(objectAt(object, "metadata"), "uid") ?? "";
const done = { kind: "done" } as const;
const already = { kind: "already" } as const;

function ok(result: ApiResult): JsonObject {
  assert.equal(result.kind, "ok");
  return result.kind === "ok" ? result.object : {};
}

test("a pod and a service are owned and controlled by their anchor's uid", async () => {
  const actions = actionsOn(client);
  const { createAnchor, createPod, createService, anchor, job } = gang();
  assert.deepEqual(await actions.act(createAnchor, signal), done);
  assert.deepEqual(await actions.act(createPod(), signal), done);
  assert.deepEqual(await actions.act(createService, signal), done);
  const anchorUid = uidOf(await get("configmaps", anchor));
  for (const resource of ["pods", "services"]) {
    const metadata = objectAt(await get(resource, `${job}-worker-0`), "metadata");
    assert.deepEqual(metadata["ownerReferences"], [
      { apiVersion: "v1", kind: "ConfigMap", name: anchor, uid: anchorUid, controller: true, blockOwnerDeletion: true },
    ]);
  }
});

test("a template's fields that this client does not know reach the API server", async () => {
  const actions = actionsOn(client);
  const { createAnchor, createPod, job } = gang();
  await actions.act(createAnchor, signal);
  await actions.act(createPod(), signal);
  const pod = await get("pods", `${job}-worker-0`);
  const [container] = arrayAt(objectAt(pod, "spec"), "containers");
  assert.equal(objectAt({ container }, "container")["unknownToThisClient"], true);
});

test("what exists and is ours is already done, for a worker that knows nothing of it too", async () => {
  const { createAnchor, createPod, createService } = gang();
  const first = actionsOn(client);
  for (const action of [createAnchor, createPod(), createService]) await first.act(action, signal);
  const second = actionsOn(client);
  for (const action of [createAnchor, createPod(), createService]) {
    assert.deepEqual(await second.act(action, signal), already, action.kind);
  }
});

test("an object without controller that carries our job and admission is adopted", async () => {
  const actions = actionsOn(client);
  const { createAnchor, createPod, anchor, job } = gang();
  ok(await create(client, "pods", createPod().manifest));
  await actions.act(createAnchor, signal);
  assert.deepEqual(await actions.act(createPod(), signal), already);
  const pod = await get("pods", `${job}-worker-0`);
  assert.equal(controllerUid(objectAt(pod, "metadata")), uidOf(await get("configmaps", anchor)));
});

const strangers = {
  "without our labels": {},
  "of another job": { [LABEL.jobUid]: "another", [LABEL.admission]: "1", [LABEL.installation]: INSTALLATION },
  "of another installation": { [LABEL.installation]: "another" },
  "of an older admission": { [LABEL.admission]: "0" },
};

for (const [whose, labels] of Object.entries(strangers)) {
  test(`a pod under our name ${whose} is refused and left as it is`, async () => {
    const actions = actionsOn(client);
    const one = gang();
    const { manifest } = one.createPod();
    const own = whose === "without our labels" ? {} : { ...one.labels, ...labels };
    const stranger = { ...manifest, metadata: { ...manifest.metadata, labels: own } };
    const before = ok(await create(client, "pods", stranger));
    await actions.act(one.createAnchor, signal);
    const outcome = await actions.act(one.createPod(), signal);
    assert.equal(outcome.kind === "failed" && outcome.reason, "AlreadyExists");
    const now = await get("pods", `${one.job}-worker-0`);
    assert.equal(uidOf(now), uidOf(before));
    assert.equal(controllerUid(objectAt(now, "metadata")), null);
  });
}

test("a pod that another object controls is refused though its labels are ours", async () => {
  const actions = actionsOn(client);
  const { createAnchor, createPod } = gang();
  const other = uidOf(ok(await create(client, "configmaps", { kind: "ConfigMap", metadata: { name: "other-owner" } })));
  const owner = { apiVersion: "v1", kind: "ConfigMap", name: "other-owner", uid: other, controller: true };
  const { manifest } = createPod();
  ok(await create(client, "pods", { ...manifest, metadata: { ...manifest.metadata, ownerReferences: [owner] } }));
  await actions.act(createAnchor, signal);
  const outcome = await actions.act(createPod(), signal);
  assert.equal(outcome.kind === "failed" && outcome.reason, "AlreadyExists");
});

test("an anchor's name that something else holds is refused", async () => {
  const actions = actionsOn(client);
  const { createAnchor, createPod, anchor, job } = gang();
  ok(await create(client, "configmaps", { kind: "ConfigMap", metadata: { name: anchor } }));
  const outcome = await actions.act(createAnchor, signal);
  assert.equal(outcome.kind === "failed" && outcome.reason, "AlreadyExists");
  const pod = await actions.act(createPod(), signal);
  assert.equal(pod.kind === "failed" && pod.reason, "AnchorMissing");
  assert.equal(await get("pods", `${job}-worker-0`), null);
});

test("nothing is made under an anchor that is absent or is being deleted", async () => {
  const actions = actionsOn(client);
  const { createAnchor, createPod, anchor, job } = gang();
  const absent = await actions.act(createPod(), signal);
  assert.equal(absent.kind === "failed" && absent.reason, "AnchorMissing");
  const held = { ...createAnchor.manifest.metadata, finalizers: ["example.com/hold"] };
  ok(await create(client, "configmaps", { ...createAnchor.manifest, metadata: held }));
  ok(await client.request({ method: "DELETE", path: `/api/v1/namespaces/default/configmaps/${anchor}` }));
  const leaving = await actions.act(createPod(), signal);
  assert.equal(leaving.kind === "failed" && leaving.reason, "AnchorMissing");
  assert.equal(await get("pods", `${job}-worker-0`), null);
});

test("only the object of the named uid is deleted", async () => {
  const actions = actionsOn(client);
  const { createAnchor, createPod, deletePod, job } = gang();
  await actions.act(createAnchor, signal);
  await actions.act(createPod(), signal);
  const uid = uidOf(await get("pods", `${job}-worker-0`));
  assert.deepEqual(await actions.act(deletePod("00000000-0000-0000-0000-000000000000"), signal), already);
  assert.equal(uidOf(await get("pods", `${job}-worker-0`)), uid);
  assert.deepEqual(await actions.act(deletePod(uid), signal), done);
  assert.deepEqual(await actions.act({ ...deletePod(uid), name: "never-was" }, signal), already);
});

test("a namespace that is absent is made only where that is allowed", async () => {
  const one = gang("team-new");
  const refused = await actionsOn(client).act(one.createAnchor, signal);
  assert.equal(refused.kind === "failed" && refused.reason, "NotFound");
  assert.deepEqual(await actionsOn(client, { createNamespaces: true }).act(one.createAnchor, signal), done);
});

test("refusals keep the reason that Kubernetes gives", async () => {
  const actions = actionsOn(client);
  const one = gang();
  await actions.act(one.createAnchor, signal);
  const broken = { ...one.createPod(), manifest: { ...one.createPod().manifest, spec: { containers: [] } } };
  const invalid = await actions.act(broken, signal);
  assert.equal(invalid.kind === "failed" && invalid.reason, "Invalid");
  sim.setFaults({ throttleWrites: 1 });
  const throttled = await actions.act(one.createPod(), signal);
  sim.setFaults({});
  assert.equal(throttled.kind === "failed" && throttled.reason, "TooManyRequests");
});

test("a server that is not there is Unreachable, and so is a call that was given up", async () => {
  const dead = clientOf(kubeconfigOf(await deadServer()));
  const nobody = await actionsOn(dead).act(gang().createAnchor, signal);
  assert.equal(nobody.kind === "failed" && nobody.reason, "Unreachable");
  await dead.close();
  const givenUp = await actionsOn(client).act(gang().createAnchor, AbortSignal.abort());
  assert.equal(givenUp.kind === "failed" && givenUp.reason, "Unreachable");
});

test("a create whose answer was lost is found to be done when it is tried again", async () => {
  const actions = actionsOn(client);
  const { createAnchor, createPod } = gang();
  await actions.act(createAnchor, signal);
  sim.setFaults({ dropAfterWrite: 1 });
  const lost = await actions.act(createPod(), signal);
  sim.setFaults({});
  assert.equal(lost.kind, "failed");
  assert.deepEqual(await actions.act(createPod(), signal), already);
});

test("a thousand pods are created over one pool of connections that is no larger than the budget, after one look at their anchor", async () => {
  const proxy = await startProxy(sim.url, () => "pass");
  const kube = clientOf(proxy.kubeconfig, 20);
  const actions = actionsOn(kube, { writeBudget: 10 });
  const one = gang();
  await actionsOn(client).act(one.createAnchor, signal);
  const creates = Array.from({ length: 1_000 }, (_, index) => actions.act(one.createPod(index), signal));
  const outcomes = await Promise.all(creates);
  assert.ok(outcomes.every(({ kind }) => kind === "done"));
  assert.ok(proxy.connections() <= 20, `${proxy.connections()} connections`);
  assert.equal(proxy.seen.filter(({ method }) => method === "GET").length, 1);
  await kube.close();
  await proxy.close();
});
