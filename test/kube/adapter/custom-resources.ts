import assert from "node:assert/strict";
import { test } from "node:test";
import { listJob } from "../../../src/adapters/cluster/list-job.ts";
import { REQUESTED_SPEC_ANNOTATION } from "../../../src/core/pods/build/pod-group.ts";
import type { Action } from "../../../src/core/reconcile/decision.ts";
import { arrayAt, type JsonObject, objectAt } from "../../../src/runtime/json.ts";
import { gang } from "../../cluster/gang.ts";
import { INSTALLATION, until } from "../../cluster/harness.ts";
import { podGroupDefinition } from "../pod-groups.ts";
import { already, done, nameOf, ok, patiently, type Scene, signal, uidOf } from "./scene.ts";

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

export function customResources(of: Scene): { readonly isCollected: () => Promise<void> } {
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
export function podGroups(of: Scene): void {
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
