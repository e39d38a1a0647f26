import assert from "node:assert/strict";
import { test } from "node:test";
import type { Action } from "../../../src/core/reconcile/decision.ts";
import { objectAt } from "../../../src/runtime/json.ts";
import { gang } from "../../cluster/gang.ts";
import { clientOf, create, until } from "../../cluster/harness.ts";
import { already, done, ok, type Scene, signal } from "./scene.ts";

/** Tests the outcomes of writes that the API server refuses. */
export function refusals(of: Scene): void {
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
