/** A worker maintains PodGroups, on the simulated cluster with a definition of their kind. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../src/core/job/job.ts";
import { type JsonObject, numberAt, objectAt, stringAt, stringMapAt } from "../../src/runtime/json.ts";
import { until } from "../cluster/harness.ts";
import { podGroupDefinition } from "../kube/pod-groups.ts";
import { count, gangOf, leftOf } from "./harness.ts";
import { workerScene } from "./scene.ts";

const { direct, store, running, start, admit } = await workerScene();

type Options = Parameters<typeof gangOf>[0] & { readonly schedulerName?: string };

function admitted(scheduler: "volcano" | "scheduler-plugins", { schedulerName, ...options }: Options) {
  const plain = gangOf({ kind: "PyTorchJob", workers: 2, ...options });
  const job = schedulerName === undefined ? plain : scheduledBy(plain, schedulerName);
  start({ gangScheduler: scheduler }).worker.wake(admit(job));
  return job;
}

function scheduledBy(job: Job, schedulerName: string): Job {
  const named = Object.entries(job.spec.replicaSpecs).map(([role, replica]) => {
    const template = { ...replica.template, spec: { ...objectAt(replica.template, "spec"), schedulerName } };
    return [role, { ...replica, template }];
  });
  return { ...job, spec: { ...job.spec, replicaSpecs: Object.fromEntries(named) } };
}

async function define(group: string, version: string): Promise<void> {
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const made = await direct.request({ method: "POST", path, body: podGroupDefinition(group, version) });
  assert.equal(made.kind, "ok");
}

const groupPath = (version: string, name: string) => `/apis/${version}/namespaces/default/podgroups/${name}`;

async function groupOf(version: string, name: string): Promise<JsonObject | null> {
  const got = await direct.request({ method: "GET", path: groupPath(version, name) });
  return got.kind === "ok" ? got.object : null;
}

test("pods wait for the PodGroup's phase; an event reports a missing definition; the group goes last", async () => {
  const version = "scheduling.volcano.sh/v1beta1";
  const job = admitted("volcano", { run: "30ms", schedulerName: "default-scheduler" });
  await until(
    () => store.events.some(({ reason }) => reason === "FailedCreatePodGroup"),
    "an event reports the missing definition",
  );
  assert.deepEqual((await leftOf(direct, job.uid)).pods, []);
  await define("scheduling.volcano.sh", "v1beta1");
  await until(async () => (await groupOf(version, job.name)) !== null, "the group is made");
  assert.equal(numberAt(objectAt(await groupOf(version, job.name), "spec"), "minMember"), 3);
  assert.deepEqual((await leftOf(direct, job.uid)).pods, [], "volcano has not said anything");
  const path = `${groupPath(version, job.name)}/status`;
  const taken = await direct.request({ method: "PATCH", path, body: { status: { phase: "Inqueue" } } });
  assert.equal(taken.kind, "ok", taken.kind === "failed" ? taken.message : "");
  await until(() => store.job(job.uid)?.status.phase === "SUCCEEDED", "it runs to its end");
  await until(async () => count(await leftOf(direct, job.uid)) === 0, "everything goes");
  await until(async () => (await groupOf(version, job.name)) === null, "the group too");
  const reasons = store.events.map(({ reason }) => reason);
  const wanted = ["SuccessfulCreatePodGroup", "SuccessfulDeletePodGroup", "SuccessfulCreateService"];
  // Volcano does not run here: the template names another scheduler, and a warning says so.
  for (const reason of [...wanted, "SettedPodTemplateSchedulerName"]) assert.ok(reasons.includes(reason), reason);
});

test("pods for scheduler-plugins name their PodGroup, which is written once", async () => {
  const version = "scheduling.x-k8s.io/v1alpha1";
  await define("scheduling.x-k8s.io", "v1alpha1");
  const job = admitted("scheduler-plugins", { run: "forever" });
  const path = `/api/v1/namespaces/default/pods/${job.name}-worker-0`;
  const pod = async () => {
    const got = await direct.request({ method: "GET", path });
    return got.kind === "ok" ? got.object : {};
  };
  const groupLabel = async () =>
    stringMapAt(objectAt(await pod(), "metadata"), "labels")["scheduling.x-k8s.io/pod-group"];
  await until(async () => (await groupLabel()) === job.name, "pods are made");
  assert.equal(stringAt(objectAt(await pod(), "spec"), "schedulerName"), "scheduler-plugins-scheduler");
  const versionOf = async () => stringAt(objectAt(await groupOf(version, job.name), "metadata"), "resourceVersion");
  const first = await versionOf();
  running[0]?.worker.wake(job.uid);
  await running[0]?.worker.runOnce();
  assert.equal(await versionOf(), first);
});
