/** Adoption and release as a worker does them, on the simulated cluster. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../src/core/job/job.ts";
import { LABEL } from "../../src/core/job/labels.ts";
import { arrayAt, type JsonObject, objectAt, stringAt } from "../../src/runtime/json.ts";
import { create, until } from "../cluster/harness.ts";
import { jobOf } from "../core/reconcile/world.ts";
import { type GangOptions, gangOf } from "./harness.ts";
import { workerScene } from "./scene.ts";

const { direct, store, running, start, admit } = await workerScene();

function admitted(options: GangOptions = {}): Job {
  const job = gangOf({ kind: "PyTorchJob", workers: 2, run: "forever", ...options });
  start().worker.wake(admit(job));
  return job;
}

async function runs(options: GangOptions = {}): Promise<string> {
  const { uid } = admitted(options);
  await until(() => store.job(uid)?.status.replicaStatuses["Worker"]?.active === 2, "the gang runs");
  return uid;
}

const path = (name: string) => `/api/v1/namespaces/default/pods/${name}`;

async function pod(name: string): Promise<JsonObject> {
  const got = await direct.request({ method: "GET", path: path(name) });
  return got.kind === "ok" ? got.object : {};
}

const controllers = (object: JsonObject) =>
  arrayAt(objectAt(object, "metadata"), "ownerReferences").map((owner) => stringAt(owner, "kind"));

async function patch(name: string, metadata: JsonObject): Promise<void> {
  const patched = await direct.request({ method: "PATCH", path: path(name), body: { metadata } });
  assert.equal(patched.kind, "ok");
}

test("a pod with changed labels is released and never deleted; an event says that its name is taken", async () => {
  const uid = await runs();
  const { name = "" } = store.job(uid) ?? {};
  const taken = `${name}-worker-1`;
  const before = await pod(taken);
  await patch(taken, { labels: { [LABEL.jobUid]: null, debug: "yes" } });
  await until(async () => controllers(await pod(taken)).length === 0, "released");
  const ready = () => store.job(uid)?.status.conditions.find(({ type }) => type === "PodsReady");
  await until(() => ready()?.reason === "FailedCreatePod", "the foreign pod is reported");
  assert.ok(store.events.some(({ reason, message }) => reason === "FailedCreatePod" && message.includes(taken)));
  const now = await pod(taken);
  assert.equal(stringAt(objectAt(now, "metadata"), "uid"), stringAt(objectAt(before, "metadata"), "uid"));
  assert.equal(store.job(uid)?.status.replicaStatuses["Worker"]?.active, 1);
});

test("a released pod is no pod of its job: it does not count, and stays when the job ends", async () => {
  const uid = await runs();
  const { name = "" } = store.job(uid) ?? {};
  const taken = `${name}-worker-1`;
  // The label of the job's uid stays: the pod is still found as one of the job's.
  await patch(taken, { labels: { [LABEL.jobName]: "debugging" } });
  await until(async () => controllers(await pod(taken)).length === 0, "released");
  await until(() => store.job(uid)?.status.replicaStatuses["Worker"]?.active === 1, "it does not count");
  store.cancel(uid);
  running[0]?.worker.wake(uid);
  await until(() => store.job(uid)?.admissions.every(({ goneMs }) => goneMs !== null) ?? false, "nothing is left");
  assert.equal(stringAt(objectAt(await pod(taken), "metadata"), "deletionTimestamp"), undefined);
  assert.notDeepEqual(await pod(taken), {}, "it still runs");
});

test("a released pod is adopted again when its labels are restored", async () => {
  const uid = await runs();
  const { name = "" } = store.job(uid) ?? {};
  const taken = `${name}-worker-1`;
  await patch(taken, { labels: { [LABEL.jobName]: "debugging" } });
  await until(async () => controllers(await pod(taken)).length === 0, "released");
  await patch(taken, { labels: { [LABEL.jobName]: name } });
  await until(async () => controllers(await pod(taken))[0] === "ConfigMap", "adopted");
  await until(() => store.job(uid)?.status.replicaStatuses["Worker"]?.active === 2, "it counts again");
});

test("a pod of a job that has ended is released, and survives the job", async () => {
  const { uid, name } = admitted({ run: "30ms", runPolicy: { cleanPodPolicy: "None" } });
  await until(() => store.job(uid)?.status.phase === "SUCCEEDED", "it ends");
  await patch(`${name}-worker-0`, { labels: { [LABEL.jobName]: "kept" } });
  await until(async () => controllers(await pod(`${name}-worker-0`)).length === 0, "released");
  store.change(uid, (one) => ({ ...one, deleteTimeMs: one.createTimeMs }));
  running[0]?.worker.wake(uid);
  await until(async () => Object.keys(await pod(`${name}-worker-1`)).length === 0, "the others go with the job");
  assert.notDeepEqual(await pod(`${name}-worker-0`), {}, "it was taken out of the job");
});

test("a pod that lost its owner is adopted again, and is deleted with the job", async () => {
  const uid = await runs();
  const { name = "" } = store.job(uid) ?? {};
  await patch(`${name}-worker-0`, { ownerReferences: null });
  await until(async () => controllers(await pod(`${name}-worker-0`))[0] === "ConfigMap", "adopted");
  store.cancel(uid);
  running[0]?.worker.wake(uid);
  await until(async () => Object.keys(await pod(`${name}-worker-0`)).length === 0, "deleted");
});

test("a foreign pod with a pod name without an index is reported too", async () => {
  const template = { spec: { containers: [{ name: "mpi", image: "busybox" }] } };
  const sent = { kind: "MPIJob", replicaSpecs: { Launcher: { replicas: 1, template } } };
  const job = jobOf(sent, { uid: "uid-of-hosts", name: "hosts", namespace: "default" });
  const spec = { containers: [{ name: "main", image: "busybox" }], terminationGracePeriodSeconds: 0 };
  assert.equal((await create(direct, "pods", { metadata: { name: "hosts-launcher" }, spec })).kind, "ok");
  start().worker.wake(admit(job));
  const ready = () => store.job(job.uid)?.status.conditions.find(({ type }) => type === "PodsReady");
  await until(() => ready()?.reason === "FailedCreatePod", "the foreign pod is reported");
});

test("a foreign pod with one of our names is reported and not touched; ours is created once it is gone", async () => {
  const job = gangOf({ kind: "PyTorchJob", workers: 1, run: "forever" });
  const body = {
    metadata: { name: `${job.name}-worker-0`, annotations: { "sim.gangway.dev/run": "forever" } },
    spec: { containers: [{ name: "main", image: "busybox" }], terminationGracePeriodSeconds: 0 },
  };
  assert.equal((await create(direct, "pods", body)).kind, "ok");
  admit(job);
  const { worker } = start();
  worker.wake(job.uid);
  const reported = () => store.events.filter(({ reason }) => reason === "FailedCreatePod");
  await until(() => reported().length > 0, "the foreign pod is reported");
  assert.equal(
    store.job(job.uid)?.status.conditions.find(({ type }) => type === "PodsReady")?.reason,
    "FailedCreatePod",
  );
  assert.equal(stringAt(objectAt(await pod(body.metadata.name), "metadata"), "deletionTimestamp"), undefined);
  assert.equal(reported().length, 1, "one event, not one for each try");
  await direct.request({ method: "DELETE", path: path(body.metadata.name), body: { gracePeriodSeconds: 0 } });
  const isOurs = async () =>
    (objectAt(objectAt(await pod(body.metadata.name), "metadata"), "labels")[LABEL.jobUid] ?? "") === job.uid;
  await until(async () => {
    worker.wake(job.uid);
    return isOurs();
  }, "ours is made");
});
