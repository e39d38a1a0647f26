import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../src/core/job/job.ts";
import { isTerminal, type JobPhase } from "../../src/core/job/status.ts";
import { PENDING_LIMITS } from "../../src/core/pods/read/read-pending.ts";
import { arrayAt, type JsonObject, objectAt, stringAt, stringMapAt } from "../../src/runtime/json.ts";
import { create, fastClock, remove, until } from "../cluster/harness.ts";
import { jobOf } from "../core/reconcile/world.ts";
import { expectedEnd, FAILING, type Failing, nameOf, type Row, rowOf } from "./failure-table.ts";
import { type GangOptions, gangOf } from "./harness.ts";
import { workerScene } from "./scene.ts";

/** The clock of these tests runs sixty times as fast as ours. */
const time = fastClock(60);
const { sim, direct, store, start, admit } = await workerScene(time);

function admitted(options: GangOptions, changed: (job: Job) => Job = (job) => job): string {
  return admit(changed(gangOf({ workers: 1, run: "forever", ...options })));
}

const statusOf = (uid: string) => store.job(uid)!.status;
const reaches = (uid: string, phase: JobPhase) => until(() => statusOf(uid).phase === phase, `${uid} is ${phase}`);

async function podsOf(uid: string): Promise<readonly JsonObject[]> {
  const query = { labelSelector: `gangway.dev/job-uid=${uid}` };
  const listed = await direct.request({ method: "GET", path: "/api/v1/pods", query });
  assert.ok(listed.kind === "ok");
  return arrayAt(listed.object, "items") as readonly JsonObject[];
}

const attemptOf = (pod: JsonObject) => stringMapAt(objectAt(pod, "metadata"), "labels")["gangway.dev/attempt"];
const nameOfPod = (pod: JsonObject) => stringAt(objectAt(pod, "metadata"), "name") ?? "";
const phaseOf = (pod: JsonObject) => stringAt(objectAt(pod, "status"), "phase");

/** The first worker's pod of an attempt, once it runs. */
async function runningPod(uid: string, attempt = "1"): Promise<JsonObject> {
  let found: JsonObject | undefined;
  await until(async () => {
    const pods = await podsOf(uid);
    found = pods.find((one) => nameOfPod(one).endsWith("-worker-0") && attemptOf(one) === attempt);
    return found !== undefined && phaseOf(found) === "Running";
  }, `attempt ${attempt} runs`);
  return found!;
}

/** Reports a pod's status as a kubelet would. */
async function report(pod: JsonObject, status: JsonObject): Promise<void> {
  const path = `/api/v1/namespaces/default/pods/${nameOfPod(pod)}/status`;
  const patched = await direct.request({ method: "PATCH", path, body: { status } });
  assert.equal(patched.kind, "ok");
}

/**
 * How a row is played: by the simulated kubelet from the annotations of the pod, or by changing the pods of its
 * job.
 */
type Play = { readonly sim: Readonly<Record<string, string>> } | { readonly act: (uid: string) => Promise<void> };

const fails = (words: string): Play => ({ sim: { fails: words } });
const exits = (codes: string): Play => ({ sim: { "exit-code": codes } });

const ended = (name: string, exitCode: number, reason = exitCode === 0 ? "Completed" : "Error") => ({
  name,
  ready: false,
  restartCount: 0,
  state: { terminated: { exitCode, reason } },
});
const runs = (name: string, restartCount = 0) => ({ name, ready: true, restartCount, state: { running: {} } });
const succeeded = { phase: "Succeeded", containerStatuses: [ended("pytorch", 0)] };

/** The first attempt gets a status. If it does not end the job, the second attempt succeeds. */
const reports = (status: JsonObject): Play => ({
  async act(uid) {
    await report(await runningPod(uid), status);
    await until(() => isTerminal(statusOf(uid)) || retried(uid), "it is judged");
    if (retried(uid)) await report(await runningPod(uid, "2"), succeeded);
  },
});
const retried = (uid: string) => statusOf(uid).attempts.byReplica["Worker/0"] === 2;

/** Containers are restarted in place. A pod that is not ended by that succeeds. */
const restarts = (restartCount: number, { ends }: { readonly ends: boolean }): Play => ({
  async act(uid) {
    const pod = await runningPod(uid);
    await report(pod, { containerStatuses: [runs("pytorch", restartCount)] });
    if (ends) return;
    await until(() => statusOf(uid).attempts.user > 0, "the restart is counted");
    await report(pod, succeeded);
  },
});

/**
 * The platform disrupts and deletes the first attempt. A kubelet takes its time to end the pod, unless its
 * node is gone too.
 */
const disrupted = (reason: string, { loses = false } = {}): Play => ({
  async act(uid) {
    const pod = await runningPod(uid);
    const path = `/api/v1/namespaces/default/pods/${nameOfPod(pod)}`;
    const { conditions } = objectAt(pod, "status");
    const condition = { type: "DisruptionTarget", status: "True", reason };
    await report(pod, { conditions: [...(conditions as JsonObject[]), condition] });
    await direct.request({ method: "DELETE", path });
    await until(() => statusOf(uid).attempts.system > 0, "it is counted");
    if (loses) sim.model.removeNode(stringAt(objectAt(pod, "spec"), "nodeName") ?? "");
    else for (const one of await podsOf(uid)) await end(one);
    for (const name of Object.keys(statusOf(uid).attempts.byReplica)) await succeed(uid, name);
  },
});

/** Deletes a pod without grace. */
async function end(pod: JsonObject): Promise<void> {
  const path = `/api/v1/namespaces/default/pods/${nameOfPod(pod)}`;
  await direct.request({ method: "DELETE", path, body: { gracePeriodSeconds: 0 } });
}

async function succeed(uid: string, replica: string): Promise<void> {
  const suffix = replica.toLowerCase().replace("/", "-");
  let pod: JsonObject | undefined;
  await until(async () => {
    pod = (await podsOf(uid)).find((one) => nameOfPod(one).endsWith(suffix) && attemptOf(one) === "2");
    return pod !== undefined && phaseOf(pod) === "Running";
  }, `${replica} runs again`);
  await report(pod!, succeeded);
}

const PLAYS: Readonly<Record<Failing, Play>> = {
  ImagePullBackOff: fails("ImagePullBackOff"),
  "ImagePullBackOff of an init container": fails("Init:ImagePullBackOff"),
  "CrashLoopBackOff of an init container": fails("Init:CrashLoopBackOff"),
  CreateContainerConfigError: fails("CreateContainerConfigError"),
  CreateContainerError: fails("CreateContainerError"),
  InvalidImageName: fails("InvalidImageName"),
  RunContainerError: fails("RunContainerError"),
  "pending for too long": { sim: { pull: "1000h" } },

  "exit code 1": exits("1,0"),
  "exit code 137": exits("137,0"),
  "exit code 143": exits("143,0"),
  OOMKilled: fails("OOMKilled"),
  "exit code 2 of an init container": fails("Init:Error"),
  "OOMKilled of an init container": fails("Init:OOMKilled"),
  "success despite OOMKilled": reports({
    phase: "Succeeded",
    containerStatuses: [ended("pytorch", 0, "OOMKilled")],
  }),
  "success despite OOMKilled of a sidecar": reports({
    phase: "Succeeded",
    containerStatuses: [ended("pytorch", 0), ended("helper", 0, "OOMKilled")],
  }),

  "exit code 1 of one of a gang": exits("1,0"),
  "exit code 1 under Never": exits("1,0"),
  "exit code 137 under Never": exits("137,0"),
  "a container restarted once": restarts(1, { ends: false }),
  "CrashLoopBackOff under OnFailure": restarts(2, { ends: true }),
  "CrashLoopBackOff under Always": restarts(2, { ends: true }),

  "the primary container ends well while a sidecar runs": reports({
    containerStatuses: [ended("pytorch", 0), runs("helper")],
  }),
  "the primary container fails while a sidecar runs": reports({
    containerStatuses: [ended("pytorch", 1), runs("helper")],
  }),
  "a sidecar is restarted while the primary container runs": {
    async act(uid) {
      const pod = await runningPod(uid);
      await report(pod, { initContainerStatuses: [runs("helper", 1)] });
      await report(pod, succeeded);
    },
  },

  "eviction by the node": fails("Evicted"),
  "eviction by the node under Never": fails("Evicted"),
  "eviction by the node that spends the last of the budget": fails("Evicted"),
  "node shutdown": fails("NodeShutdown"),
  "preemption by the node": fails("Preempting"),
  "a node that refuses the pod": fails("OutOfcpu"),

  "eviction through the API": disrupted("EvictionByEvictionAPI"),
  "eviction through the API under Never": disrupted("EvictionByEvictionAPI"),
  "eviction of one of a gang": disrupted("EvictionByEvictionAPI"),
  "eviction of an interruptible job": disrupted("EvictionByEvictionAPI"),
  "preemption by the scheduler": disrupted("PreemptionByScheduler"),
  "eviction by a taint": disrupted("DeletionByTaintManager"),
  "loss of the node": disrupted("DeletionByTaintManager", { loses: true }),
  "collection of one of a gang with its node": {
    async act(uid) {
      const pod = await runningPod(uid);
      sim.model.removeNode(stringAt(objectAt(pod, "spec"), "nodeName") ?? "");
      await until(() => statusOf(uid).attempts.system > 0, "it is counted");
      for (const one of await podsOf(uid)) await end(one);
      for (const name of Object.keys(statusOf(uid).attempts.byReplica)) await succeed(uid, name);
    },
  },
};

function rowJob(failing: Failing, play: Play): Job {
  const { policy = "ExitCode", beside, gang = false, ...row }: Row = rowOf(failing);
  const script = { pull: "1ms", start: "1ms", ...("sim" in play ? { run: "30ms", ...play.sim } : HELD) };
  const annotations = Object.fromEntries(
    Object.entries(script).map(([name, text]) => [`sim.gangway.dev/${name}`, text]),
  );
  const main = { name: "pytorch", image: "busybox" };
  const helper = {
    name: "helper",
    image: "busybox",
    ...(beside === "nativeSidecar" ? { restartPolicy: "Always" } : {}),
  };
  const spec = {
    terminationGracePeriodSeconds: 1_000_000,
    containers: beside === "sidecar" ? [main, helper] : [main],
    ...(beside === "init" || beside === "nativeSidecar" ? { initContainers: [helper] } : {}),
  };
  const sent = {
    kind: gang ? "Job" : "PyTorchJob",
    replicaSpecs: {
      Worker: { replicas: gang ? 2 : 1, restartPolicy: policy, template: { metadata: { annotations }, spec } },
    },
    runPolicy: {
      cleanPodPolicy: "All" as const,
      ...(row.interruptible === undefined ? {} : { interruptible: row.interruptible }),
      ...(row.backoffLimit === undefined ? {} : { backoffLimit: row.backoffLimit }),
      ...(row.systemBackoffLimit === undefined ? {} : { systemBackoffLimit: row.systemBackoffLimit }),
    },
  };
  return jobOf(sent, { uid: `uid-of-${nameOf(failing)}`, name: nameOf(failing), namespace: "default" });
}

/** A pod that runs until the test changes it. After a deletion it runs on until its grace period is over. */
const HELD = { run: "forever", "termination-grace": "1000h" };

for (const failing of FAILING) {
  test(failing, async () => {
    const play = PLAYS[failing];
    const row = rowOf(failing);
    const uid = admit(rowJob(failing, play));
    start({ pending: { ...PENDING_LIMITS, podPendingTimeoutMs: row.impatient === true ? 30_000 : 0 } });
    if ("act" in play) await play.act(uid);
    await until(() => isTerminal(statusOf(uid)), "the job ends");
    const { phase, failure, attempts } = statusOf(uid);
    const end = {
      phase,
      failure: failure === null ? null : { code: failure.code, kind: failure.kind },
      attempts: { user: attempts.user, system: attempts.system },
    };
    assert.deepEqual(end, expectedEnd(row), JSON.stringify(failure));
  });
}

const workersAsk = (resources: JsonObject) => (job: Job) => {
  const spec = { containers: [{ name: "main", image: "busybox", resources }] };
  const { Worker } = job.spec.replicaSpecs;
  const template = { ...Worker!.template, spec };
  return { ...job, spec: { ...job.spec, replicaSpecs: { Worker: { ...Worker!, template } } } };
};

test("a pod that its cluster refuses as invalid ends the job, and that is recorded before any clean-up", async () => {
  const uid = admitted({ kind: "Job" }, workersAsk({ requests: { cpu: "2" }, limits: { cpu: "1" } }));
  start();
  await reaches(uid, "FAILED");
  const { failure } = statusOf(uid);
  assert.deepEqual([failure?.code, failure?.kind], ["BadTaskFormat", "USER"]);
  assert.match(failure?.message ?? "", /refuses pod .*-worker-0: .*must be less than or equal to cpu limit/);
  await until(() => store.released.has(`${uid}/1`), "its tokens are released");
});

test("a pod that its namespace's quota refuses waits, but a smaller pod of that namespace does not", async () => {
  const hard = { "requests.cpu": "3" };
  await create(direct, "resourcequotas", {
    apiVersion: "v1",
    kind: "ResourceQuota",
    metadata: { name: "cpu" },
    spec: { hard },
  });
  const asks = (cpu: string) => admitted({ kind: "Job" }, workersAsk({ requests: { cpu } }));
  const first = asks("2");
  start();
  await reaches(first, "RUNNING");
  const large = asks("2");
  const refused = () => store.events.filter(({ jobUid, reason }) => jobUid === large && reason === "FailedCreatePod");
  await until(() => refused().length > 0, "an event says that the quota refuses the large pod");
  const small = asks("1");
  await reaches(small, "RUNNING");
  assert.equal((await podsOf(large)).length, 0);
  assert.equal(statusOf(large).phase, "STARTING");
  await remove(direct, "resourcequotas", "cpu");
  await reaches(large, "RUNNING");
  assert.deepEqual([statusOf(large).attempts.user, statusOf(large).attempts.system], [0, 0]);
});
