import assert from "node:assert/strict";
import { test } from "node:test";
import { listJob } from "../../../src/adapters/cluster/list-job.ts";
import { LABEL } from "../../../src/core/job/labels.ts";
import { defaultSpec } from "../../../src/core/job/request/defaults.ts";
import { mpiJob } from "../../../src/core/kinds/kubeflow/mpi-job.ts";
import { buildPart } from "../../../src/core/pods/build/build-part.ts";
import { controllerUid } from "../../../src/core/pods/read/pod-view.ts";
import { arrayAt, type JsonObject, objectAt } from "../../../src/runtime/json.ts";
import { gang } from "../../cluster/gang.ts";
import { configMap, create, INSTALLATION } from "../../cluster/harness.ts";
import { already, done, ok, type Scene, signal, uidOf, versionOf } from "./scene.ts";

/** The parts of an MPIJob, from its kind. */
function mpiParts(jobName: string, jobUid: string, workers: number): readonly JsonObject[] {
  const template = { spec: { containers: [{ name: "mpi", image: "i" }] } };
  const sent = { kind: "MPIJob", replicaSpecs: { Launcher: { template }, Worker: { replicas: workers, template } } };
  const context = { kind: mpiJob, labels: {}, namespaceQueue: null, priorityClass: null };
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

/** Tests the owners of a gang's objects, and which objects are adopted. */
export function ownership(of: Scene): void {
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

  test("keys are made once for an admission, belong to the anchor, and are never changed", async () => {
    const actions = of.actions();
    const { createAnchor, anchor, labels, uid } = gang();
    await actions.act(createAnchor, signal);
    const name = `mpi-ssh-auth-${uid}-1`;
    const part = { apiVersion: "v1", kind: "Secret", metadata: { name, labels }, type: "kubernetes.io/ssh-auth" };
    const manifest = { ...part, metadata: { ...part.metadata, namespace: "default" } };
    for (const [kind, outcome] of [
      ["createPart", done],
      ["createPart", already],
      ["updatePart", already],
    ] as const) {
      const action = { cluster: "sim", namespace: "default", kind, anchor, manifest } as const;
      assert.deepEqual(await actions.act(action, signal), outcome, kind);
    }
    const secret = (await of.get("secrets", name)) ?? {};
    assert.deepEqual([secret["type"], secret["immutable"]], ["kubernetes.io/ssh-auth", true]);
    assert.deepEqual(Object.keys(objectAt(secret, "data")).sort(), ["ssh-privatekey", "ssh-publickey"]);
    assert.equal(controllerUid(objectAt(secret, "metadata")), uidOf(await of.get("configmaps", anchor)));
  });

  test("a volume claim belongs to the anchor, and one that is retained to nobody", async () => {
    const actions = of.actions();
    const [one, other] = [gang(), gang()];
    for (const { createAnchor } of [one, other]) await actions.act(createAnchor, signal);
    const spec = { accessModes: ["ReadWriteMany"], resources: { requests: { storage: "1Gi" } } };
    const claim = ({ job, labels, anchor }: ReturnType<typeof gang>, annotations: JsonObject) => {
      const metadata = { name: `data-${job}`, namespace: "default", labels, annotations };
      const manifest = { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata, spec };
      return { cluster: "sim", namespace: "default", kind: "createPart", anchor, manifest } as const;
    };
    const retained = { [LABEL.retained]: "true" };
    for (const outcome of [done, already]) {
      assert.deepEqual(await actions.act(claim(one, {}), signal), outcome);
      assert.deepEqual(await actions.act(claim(other, retained), signal), outcome);
    }
    const metadataOf = async (job: string) =>
      objectAt(await of.get("persistentvolumeclaims", `data-${job}`), "metadata");
    assert.equal(controllerUid(await metadataOf(one.job)), uidOf(await of.get("configmaps", one.anchor)));
    assert.equal((await metadataOf(other.job))["ownerReferences"], undefined);
    const later = { ...claim(one, {}), anchor: other.anchor };
    const ofAnother = {
      ...later,
      manifest: { ...later.manifest, metadata: { ...later.manifest.metadata, labels: other.labels } },
    };
    assert.equal((await actions.act(ofAnother, signal)).kind, "failed", "a claim of another job is not taken");
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
