import assert from "node:assert/strict";
import { test } from "node:test";
import { listJob } from "../../../src/adapters/cluster/list-job.ts";
import { LABEL } from "../../../src/core/job/labels.ts";
import { podView } from "../../../src/core/pods/read/pod-view.ts";
import { claimVerdict } from "../../../src/core/reconcile/objects/claim.ts";
import { sweep } from "../../../src/core/reconcile/reconcile.ts";
import { arrayAt, isJsonObject, type JsonObject, objectAt, stringAt } from "../../../src/runtime/json.ts";
import { gang } from "../../cluster/gang.ts";
import { configMap, create, INSTALLATION, until } from "../../cluster/harness.ts";
import { already, done, nameOf, ok, type Scene, signal, uidOf } from "./scene.ts";

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

/** Tests that pods are adopted and released only with the right owner. */
export function claims(of: Scene): void {
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
