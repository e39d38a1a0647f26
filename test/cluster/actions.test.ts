import assert from "node:assert/strict";
import { test } from "node:test";
import { Actions } from "../../src/adapters/cluster/actions.ts";
import type { KubeClient } from "../../src/adapters/cluster/client.ts";
import { WriteQueue } from "../../src/adapters/cluster/write-queue.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { arrayAt, objectAt } from "../../src/runtime/json.ts";
import { gang } from "./gang.ts";
import { clientOf, clock, deadServer, gpuNodes, INSTALLATION, kubeconfigOf, startProxy } from "./harness.ts";
import { ownSim } from "./own-sim.ts";

const { sim, direct: client } = await ownSim(gpuNodes(4));
const signal = new AbortController().signal;

function actionsOn(kube: KubeClient, options: { writesMax?: number } = {}): Actions {
  return new Actions({
    client: kube,
    clock,
    installation: INSTALLATION,
    seen: () => undefined,
    writes: new WriteQueue({ clock, writesMax: options.writesMax ?? 50 }),
    createNamespaces: false,
  });
}

async function get(resource: string, name: string, namespace = "default"): Promise<JsonObject | null> {
  const got = await client.request({ method: "GET", path: `/api/v1/namespaces/${namespace}/${resource}/${name}` });
  return got.kind === "ok" ? got.object : null;
}

const already = { kind: "already" } as const;

test("fields of a template that this client does not know reach the API server", async () => {
  const actions = actionsOn(client);
  const { createAnchor, createPod, job } = gang();
  await actions.act(createAnchor, signal);
  const pod = createPod();
  const containers = [{ name: "main", image: "busybox", unknownToThisClient: true }];
  await actions.act({ ...pod, manifest: { ...pod.manifest, spec: { containers } } }, signal);
  const made = await get("pods", `${job}-worker-0`);
  const [container] = arrayAt(objectAt(made, "spec"), "containers");
  assert.equal(objectAt({ container }, "container")["unknownToThisClient"], true);
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
  assert.equal(throttled.kind === "failed" && throttled.retryAfterMs, 1000);
});

test("a call without a server is Unreachable, and so is a call that was aborted", async () => {
  const dead = clientOf(kubeconfigOf(deadServer()));
  const nobody = await actionsOn(dead).act(gang().createAnchor, signal);
  assert.equal(nobody.kind === "failed" && nobody.reason, "Unreachable");
  await dead.close();
  const givenUp = await actionsOn(client).act(gang().createAnchor, AbortSignal.abort());
  assert.equal(givenUp.kind === "failed" && givenUp.reason, "Unreachable");
});

test("a create whose answer was lost turns out to be done when it is tried again", async () => {
  const actions = actionsOn(client);
  const { createAnchor, createPod } = gang();
  await actions.act(createAnchor, signal);
  sim.setFaults({ dropAfterWrite: 1 });
  const lost = await actions.act(createPod(), signal);
  sim.setFaults({});
  assert.equal(lost.kind, "failed");
  assert.deepEqual(await actions.act(createPod(), signal), already);
});

test("a thousand pods are created within the budget of connections, after one read of their anchor", async (t) => {
  const proxy = await startProxy(sim.url, () => "pass");
  t.after(() => proxy.close());
  const kube = clientOf(proxy.kubeconfig, 20);
  const actions = actionsOn(kube, { writesMax: 10 });
  const one = gang();
  await actionsOn(client).act(one.createAnchor, signal);
  const creates = Array.from({ length: 1_000 }, (_, index) => actions.act(one.createPod(index), signal));
  const outcomes = await Promise.all(creates);
  assert.ok(outcomes.every(({ kind }) => kind === "done"));
  assert.ok(proxy.connections() <= 20, `${proxy.connections()} connections`);
  assert.equal(proxy.seen.filter(({ method }) => method === "GET").length, 1);
  await kube.close();
});
