/** The simulated scheduler prefers the nodes that kube-scheduler would. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SimModel } from "../../src/adapters/simcluster/model.ts";
import { steeredTo } from "../../src/core/pods/build/steer-pod.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { stringAt } from "../../src/runtime/json.ts";
import { create, newModel, pod, podManifest } from "./support.ts";

const WAIT_MS = 1_000;

/** Creates pods one after the other, so that each is bound before the next one comes, and returns their nodes. */
function nodesOf(model: SimModel, pods: Readonly<Record<string, JsonObject>>): readonly string[] {
  return Object.entries(pods).map(([name, manifest]) => {
    create(model, "pods", "default", manifest);
    model.advance(model.store.nowMs + WAIT_MS);
    return stringAt(pod(model, name)?.spec, "nodeName") ?? "";
  });
}

function gpuPods(count: number, options: { spec?: JsonObject; labels?: Record<string, string> } = {}) {
  const { spec = {}, labels = {} } = options;
  return Object.fromEntries(
    Array.from({ length: count }, (_, at) => {
      return [`p${at}`, podManifest(`p${at}`, { spec, gpus: 1, sim: { run: "forever" }, metadata: { labels } })];
    }),
  );
}

test("pods without a wish are spread over the nodes", () => {
  const nodes = nodesOf(newModel(4), gpuPods(8));
  assert.deepEqual(nodes.slice(0, 4), ["n0", "n1", "n2", "n3"]);
  assert.deepEqual([...nodes.slice(4)].sort(), ["n0", "n1", "n2", "n3"]);
});

test("steered pods come to their planned node, while it takes them", () => {
  const spec = steeredTo({}, { node: "n2", others: ["n0", "n1"] });
  const nodes = nodesOf(newModel(4), gpuPods(9, { spec }));
  assert.deepEqual(
    nodes.slice(0, 8),
    Array.from({ length: 8 }, () => "n2"),
  );
  assert.ok(["n0", "n1"].includes(nodes[8] ?? ""), nodes[8]);
});

test("a steered pod whose nodes are gone waits for them", () => {
  const spec = steeredTo({}, { node: "m0", others: ["m1"] });
  assert.deepEqual(nodesOf(newModel(2), gpuPods(1, { spec })), [""]);
});

test("a Service spreads the pods that it selects node by node, but not steered ones", () => {
  const labels = { app: "ring" };
  const service = { metadata: { name: "ring" }, spec: { selector: labels, clusterIP: "None" } };
  for (const [steered, expected] of [
    [false, ["n0", "n1", "n2", "n0"]],
    [true, ["n2", "n2", "n2", "n2"]],
  ] as const) {
    const model = newModel(3);
    create(model, "services", "default", service);
    const spec = steered ? steeredTo({}, { node: "n2", others: ["n0"] }) : {};
    assert.deepEqual(nodesOf(model, gpuPods(4, { spec, labels })), expected);
  }
});

test("a taint that is better avoided outweighs free processors", () => {
  const model = newModel(1);
  create(model, "nodes", null, {
    metadata: { name: "n9" },
    spec: { taints: [{ key: "old", effect: "PreferNoSchedule" }] },
    status: { allocatable: { cpu: "640", memory: "5120Gi", "nvidia.com/gpu": "8" } },
  });
  assert.deepEqual(nodesOf(model, gpuPods(1)), ["n0"]);
});
