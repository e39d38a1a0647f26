/** A gang that was admitted and does not start says why: what its cluster reports, while it holds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodProblem } from "../../src/core/job/status.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { objectAt } from "../../src/runtime/json.ts";
import { create, fastClock, remove, until } from "../cluster/harness.ts";
import { gangOf } from "./harness.ts";
import { workerScene } from "./scene.ts";

/** The clock of these tests runs sixty times as fast as ours. */
const { sim, direct, store, start, admit } = await workerScene(fastClock(60));

/** Two workers that run until the test ends. */
function gang(spec: JsonObject = {}): string {
  const job = gangOf({ workers: 2, run: "forever" });
  const { Worker } = job.spec.replicaSpecs;
  const template = { ...Worker!.template, spec: { ...objectAt(Worker!.template, "spec"), ...spec } };
  return admit({ ...job, spec: { ...job.spec, replicaSpecs: { Worker: { ...Worker!, template } } } });
}

const problemsOf = (uid: string): readonly PodProblem[] => store.job(uid)?.status.podProblems?.problems ?? [];
const said = (uid: string) => problemsOf(uid).map(({ pods, reason }) => `${pods} ${reason}`);
const says = (uid: string, ...wanted: string[]) =>
  until(() => said(uid).join() === wanted.join(), `${uid} says ${wanted.join() || "nothing"}`);
const runs = (uid: string) => until(() => store.job(uid)?.status.phase === "RUNNING", `${uid} runs`);

test("no node takes the pods, until one does", async () => {
  const uid = gang({ nodeSelector: { room: "yes" } });
  start();
  await says(uid, "2 Unschedulable");
  assert.match(problemsOf(uid)[0]?.message ?? "", /^0\/4 nodes are available: 4 node\(s\) didn't match/);
  const body = { metadata: { labels: { room: "yes" } } };
  const [node = ""] = await nodeNames();
  assert.equal((await direct.request({ method: "PATCH", path: `/api/v1/nodes/${node}`, body })).kind, "ok");
  await runs(uid);
  await says(uid);
  assert.deepEqual(Object.values(store.job(uid)?.status.pods?.facts ?? {}), [
    { node, ready: true },
    { node, ready: true },
  ]);
});

test("no scheduler has the name that the template gives", async () => {
  const uid = gang({ schedulerName: "nobody" });
  start();
  await says(uid, "2 NotScheduled");
  assert.match(problemsOf(uid)[0]?.message ?? "", /no scheduler of the name nobody has looked at the pod/);
});

test("the API server fails, until it does not", async () => {
  sim.setFaults({ failWrites: 1 });
  const uid = gang();
  start();
  await says(uid, "2 FailedCreateAnchor");
  sim.setFaults({});
  await runs(uid);
  await says(uid);
});

test("a quota refuses the pods: also of a job that is not tried because another was refused", async () => {
  const cpu = (amount: string) => ({
    containers: [{ name: "main", image: "busybox", resources: { requests: { cpu: amount } } }],
  });
  await create(direct, "resourcequotas", {
    apiVersion: "v1",
    kind: "ResourceQuota",
    metadata: { name: "cpu" },
    spec: { hard: { "requests.cpu": "1" } },
  });
  const first = gang(cpu("2"));
  start();
  await says(first, "2 FailedCreatePod");
  assert.match(problemsOf(first)[0]?.message ?? "", /exceeded quota: cpu, requested: requests.cpu=2/);
  const second = gang(cpu("2"));
  await says(second, "2 FailedCreatePod");
  assert.match(problemsOf(second)[0]?.message ?? "", /exceeded quota: cpu/);
  await remove(direct, "resourcequotas", "cpu");
  await Promise.all([runs(first), runs(second)]);
  await Promise.all([says(first), says(second)]);
});

test("a worker that takes a job over goes on with what the one before has recorded", async () => {
  sim.setFaults({ failWrites: 1 });
  const uid = gang();
  const before = start();
  await says(uid, "2 FailedCreateAnchor");
  const [problem] = problemsOf(uid);
  await before.stop();
  const events = store.events.length;
  start();
  await until(() => store.events.length > events, "the next worker has tried too");
  assert.equal(problemsOf(uid)[0]?.sinceMs, problem?.sinceMs);
  sim.setFaults({});
  await runs(uid);
  await says(uid);
});

test("words of the scheduler that change all the time are written a few times", async () => {
  const uid = gang({ schedulerName: "chatty" });
  start();
  await says(uid, "2 NotScheduled");
  const { namespace, name } = store.job(uid)!;
  const path = `/api/v1/namespaces/${namespace}/pods/${name}-worker-0/status`;
  const writes = store.writes;
  const reports = 200;
  for (let count = 0; count < reports; count++) {
    const message = `0/${count} nodes are available`;
    const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message };
    const patched = await direct.request({ method: "PATCH", path, body: { status: { conditions: [condition] } } });
    assert.equal(patched.kind, "ok");
  }
  await until(
    () => problemsOf(uid).some(({ message }) => message.includes(`${reports - 1} nodes`)),
    "the last is shown",
  );
  assert.ok(store.writes - writes < 40, `${store.writes - writes} writes`);
});

async function nodeNames(): Promise<readonly string[]> {
  const listed = await direct.request({ method: "GET", path: "/api/v1/nodes" });
  assert.ok(listed.kind === "ok");
  return (listed.object["items"] as readonly JsonObject[]).map((node) => String(objectAt(node, "metadata")["name"]));
}
