import assert from "node:assert/strict";
import { test } from "node:test";
import { handleRequest } from "../../src/adapters/simcluster/api/routes.ts";
import type { SimModel } from "../../src/adapters/simcluster/model.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { create, destroy, kindOf, newModel, pod, podManifest } from "./support.ts";

/** A config map `owner` that owns a running pod `owned`, which takes a second to stop. */
function owned(model: SimModel): void {
  const { metadata } = create(model, "configmaps", "default", { metadata: { name: "owner" } });
  const owner = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: metadata.uid, blockOwnerDeletion: true };
  const sim = { run: "forever", "termination-grace": "1s" };
  create(
    model,
    "pods",
    "default",
    podManifest("owned", { sim, metadata: { name: "owned", ownerReferences: [owner] } }),
  );
  model.advance(model.nowMs + 1000);
}

function there(model: SimModel): string {
  const owner = model.store.get("configmaps", "default/owner") === undefined ? "" : "owner ";
  const object = pod(model, "owned");
  const deleting = object?.metadata.deletionTimestamp === undefined ? "" : " deleting";
  return `${owner}${object === undefined ? "" : `owned${deleting}`}`.trim();
}

const propagations: Record<string, { propagation: string; at: Record<number, string> }> = {
  "in the background the owner is deleted first": {
    propagation: "Background",
    at: { 0: "owned", 1: "owned deleting", 1100: "" },
  },
  "in the foreground the owner is deleted last": {
    propagation: "Foreground",
    at: { 0: "owner owned", 1: "owner owned deleting", 1100: "" },
  },
  "an orphan stays": { propagation: "Orphan", at: { 0: "owned", 60000: "owned" } },
};

for (const [name, { propagation, at }] of Object.entries(propagations)) {
  test(`deleting an owner: ${name}`, () => {
    const model = newModel(1);
    owned(model);
    const start = model.nowMs;
    destroy(model, "configmaps", "default", "owner", { propagation });
    if (propagation === "Orphan") assert.equal(pod(model, "owned")?.metadata.ownerReferences, undefined);
    for (const [ms, expected] of Object.entries(at)) {
      if (Number(ms) > 0) model.advance(start + Number(ms));
      assert.equal(there(model), expected, `after ${ms} ms`);
    }
  });
}

function configMap(name: string, uid: string) {
  return { apiVersion: "v1", kind: "ConfigMap", name, uid };
}

test("an object stays while one of its owners exists, and loses its references to the others", () => {
  const model = newModel(1);
  const [a, b] = ["a", "b"].map((name) => create(model, "configmaps", "default", { metadata: { name } }).metadata);
  const ownerReferences = [configMap("a", a?.uid ?? ""), configMap("b", b?.uid ?? "")];
  create(model, "services", "default", { metadata: { name: "s", ownerReferences }, spec: { clusterIP: "None" } });
  destroy(model, "configmaps", "default", "a");
  model.advance(model.nowMs + 1);
  assert.deepEqual(model.store.get("services", "default/s")?.object.metadata.ownerReferences, [ownerReferences[1]]);
  destroy(model, "configmaps", "default", "b");
  model.advance(model.nowMs + 1);
  assert.equal(model.store.get("services", "default/s"), undefined);
});

test("a new object of the owner's name is not the owner", () => {
  const model = newModel(1);
  const { uid } = create(model, "configmaps", "default", { metadata: { name: "owner" } }).metadata;
  destroy(model, "configmaps", "default", "owner");
  create(model, "configmaps", "default", { metadata: { name: "owner" } });
  const ownerReferences = [configMap("owner", uid)];
  create(model, "services", "default", { metadata: { name: "s", ownerReferences }, spec: { clusterIP: "None" } });
  model.advance(model.nowMs + 1);
  assert.equal(model.store.get("services", "default/s"), undefined);
});

test("owners of unknown kinds count as existing", () => {
  const model = newModel(1);
  const ownerReferences = [{ apiVersion: "batch/v1", kind: "Job", name: "j", uid: "some" }];
  create(model, "configmaps", "default", { metadata: { name: "c", ownerReferences } });
  model.advance(model.nowMs + 60_000);
  assert.notEqual(model.store.get("configmaps", "default/c"), undefined);
});

test("a finalizer keeps a deleted object until it is removed", () => {
  const model = newModel(1);
  create(model, "configmaps", "default", { metadata: { name: "c", finalizers: ["example.com/hold"] } });
  const marked = destroy(model, "configmaps", "default", "c");
  assert.notEqual(marked.metadata.deletionTimestamp, undefined);
  model.advance(model.nowMs + 60_000);
  assert.notEqual(model.store.get("configmaps", "default/c"), undefined);
  patch(model, "configmaps", "c", { metadata: { finalizers: null } });
  assert.equal(model.store.get("configmaps", "default/c"), undefined);
});

test("a finalizer keeps a stopped pod, whose containers have ended", () => {
  const model = newModel(1);
  const metadata = { name: "p", finalizers: ["example.com/hold"] };
  create(model, "pods", "default", podManifest("p", { sim: { run: "forever" }, metadata }));
  model.advance(model.nowMs + 1000);
  destroy(model, "pods", "default", "p");
  model.advance(model.nowMs + 60_000);
  assert.equal(pod(model, "p")?.status?.["phase"], "Failed");
  patch(model, "pods", "p", { metadata: { finalizers: null } });
  assert.equal(pod(model, "p"), undefined);
});

function patch(model: SimModel, resource: string, name: string, body: JsonObject): void {
  const request = { method: "PATCH", query: new URLSearchParams(), contentType: "application/merge-patch+json", body };
  handleRequest(model, { kind: kindOf(resource), namespace: "default", name, part: "main" }, request);
}

test("a pod's spec cannot be changed, but its gates can be removed", () => {
  const model = newModel(1);
  create(model, "pods", "default", podManifest("p", { spec: { schedulingGates: [{ name: "example.com/wait" }] } }));
  model.advance(model.nowMs + 1000);
  assert.equal(pod(model, "p")?.spec?.["nodeName"], undefined);
  assert.throws(
    () => patch(model, "pods", "p", { spec: { hostNetwork: true } }),
    /spec: Forbidden: pod updates may not change/,
  );
  patch(model, "pods", "p", { spec: { schedulingGates: null } });
  model.advance(model.nowMs + 1000);
  assert.equal(pod(model, "p")?.status?.["phase"], "Running");
});
