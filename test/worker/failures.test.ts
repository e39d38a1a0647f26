import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import type { KubeClient } from "../../src/adapters/cluster/client.ts";
import type { SimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { JobPhase } from "../../src/core/job/status.ts";
import { arrayAt, type JsonObject, objectAt, stringAt, stringMapAt } from "../../src/runtime/json.ts";
import { clientOf, create, fastClock, gpuNodes, remove, startSim, until } from "../cluster/harness.ts";
import { type GangOptions, gangOf, type Running, runWorker } from "./harness.ts";
import { MemoryStore } from "./memory-store.ts";

/** A minute here is a second of the test's. */
const time = fastClock(60);
let sim: SimCluster;
let direct: KubeClient;
let store: MemoryStore;
let running: Running[] = [];

before(async () => {
  sim = await startSim(gpuNodes(4), 1, time);
  direct = clientOf(sim.kubeconfig());
});

beforeEach(() => {
  store = new MemoryStore(time);
});

afterEach(async () => {
  await Promise.all(running.map((one) => one.stop()));
  running = [];
});

after(async () => {
  await direct.close();
  await sim.close();
});

function start(): Running {
  const one = runWorker(sim, store, undefined, time);
  running.push(one);
  return one;
}

function admitted(options: GangOptions, changed: (job: Job) => Job = (job) => job): string {
  const job = changed(gangOf({ kind: "PyTorchJob", workers: 1, run: "forever", ...options }));
  store.add(job);
  store.admit(job.uid, "sim");
  return job.uid;
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
const nameOf = (pod: JsonObject) => stringAt(objectAt(pod, "metadata"), "name") ?? "";

/** Reports of the first worker of a job what a kubelet would. */
async function report(uid: string, status: JsonObject): Promise<void> {
  let path = "";
  await until(async () => {
    const pod = (await podsOf(uid)).find((one) => nameOf(one).endsWith("-worker-0") && attemptOf(one) === "1");
    path = `/api/v1/namespaces/default/pods/${pod === undefined ? "" : nameOf(pod)}/status`;
    return stringAt(objectAt(pod, "status"), "phase") === "Running";
  }, "the worker runs");
  const patched = await direct.request({ method: "PATCH", path, body: { status } });
  assert.equal(patched.kind, "ok");
}

const ended = (exitCode: number, reason = "Error") => ({
  containerStatuses: [{ name: "pytorch", ready: false, restartCount: 0, state: { terminated: { exitCode, reason } } }],
});
const initEnded = (exitCode: number, reason = "Error") => ({
  containerStatuses: [
    { name: "pytorch", ready: false, restartCount: 0, state: { waiting: { reason: "PodInitializing" } } },
  ],
  initContainerStatuses: [
    { name: "fetch", ready: false, restartCount: 0, state: { terminated: { exitCode, reason } } },
  ],
});
/** A pod that does not start: the reason that its container, or an init container, waits for. */
const pending = (reason: string, list = "containerStatuses") => {
  const lastTransitionTime = new Date(time.nowMs()).toISOString();
  return {
    phase: "Pending",
    conditions: [{ type: "Ready", status: "False", reason: "ContainersNotReady", lastTransitionTime }],
    containerStatuses: [{ name: "pytorch", ready: false, state: { waiting: { reason: "PodInitializing" } } }],
    [list]: [{ name: "pytorch", ready: false, restartCount: 0, state: { waiting: { reason } } }],
  };
};
const failed = (of: JsonObject) => () => ({ phase: "Failed", ...of });
const disrupted = { conditions: [{ type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI" }] };

/** What is reported, whether the replica is started again, which budget that spends, and the code where the job ends. */
type Row = { readonly says: () => JsonObject; readonly spends: "user" | "system" | null; readonly ends?: string };

const table: Record<string, Row> = {
  ImagePullBackOff: { says: () => pending("ImagePullBackOff"), spends: "user" },
  "ImagePullBackOff of an init container": {
    says: () => pending("ImagePullBackOff", "initContainerStatuses"),
    spends: "user",
  },
  "CrashLoopBackOff of an init container": {
    says: () => pending("CrashLoopBackOff", "initContainerStatuses"),
    spends: "user",
  },
  CreateContainerConfigError: {
    says: () => pending("CreateContainerConfigError"),
    spends: null,
    ends: "ContainersNotReady|CreateContainerConfigError",
  },
  CreateContainerError: {
    says: () => pending("CreateContainerError"),
    spends: null,
    ends: "ContainersNotReady|CreateContainerError",
  },
  InvalidImageName: {
    says: () => pending("InvalidImageName"),
    spends: null,
    ends: "ContainersNotReady|InvalidImageName",
  },
  RunContainerError: { says: () => pending("RunContainerError"), spends: "system" },
  OOMKilled: { says: failed(ended(137, "OOMKilled")), spends: "user" },
  "success despite OOMKilled": { says: () => ({ phase: "Succeeded", ...ended(0, "OOMKilled") }), spends: "user" },
  "exit code 1": { says: failed(ended(1)), spends: null, ends: "ExitCode" },
  "exit code 137": { says: failed(ended(137)), spends: "system" },
  "exit code 143": { says: failed(ended(143)), spends: "user" },
  "exit code 2 of an init container": { says: failed(initEnded(2)), spends: "user" },
  "OOMKilled of an init container": { says: failed(initEnded(137, "OOMKilled")), spends: "user" },
  eviction: { says: failed({ reason: "Evicted", message: "The node was low on resource: memory." }), spends: "system" },
  "node shutdown": { says: failed({ reason: "Terminated", ...ended(1) }), spends: "system" },
  DisruptionTarget: { says: failed({ ...ended(1), ...disrupted }), spends: "system" },
};

for (const [name, { says, spends, ends }] of Object.entries(table)) {
  const what = ends === undefined ? `is started again and spends the ${spends}'s budget` : `ends the job: ${ends}`;
  test(`under ExitCode, ${name} ${what}`, async () => {
    const uid = admitted({}, exitCodePolicy);
    start();
    await report(uid, says());
    if (ends !== undefined) {
      await reaches(uid, "FAILED");
      assert.equal(statusOf(uid).failure?.code, ends);
    } else {
      await until(async () => {
        const pods = (await podsOf(uid)).filter((pod) => nameOf(pod).endsWith("-worker-0"));
        return pods.length === 1 && attemptOf(pods[0]!) === "2";
      }, "the worker is started again");
    }
    const { user, system } = statusOf(uid).attempts;
    assert.deepEqual({ user, system }, { user: Number(spends === "user"), system: Number(spends === "system") });
  });
}

function exitCodePolicy(job: Job): Job {
  const entries = Object.entries(job.spec.replicaSpecs).map(([role, of]) => [
    role,
    { ...of, restartPolicy: "ExitCode" as const },
  ]);
  return { ...job, spec: { ...job.spec, replicaSpecs: Object.fromEntries(entries) } };
}

const workersAsk = (resources: JsonObject) => (job: Job) => {
  const spec = { containers: [{ name: "main", image: "busybox", resources }] };
  const { Worker } = job.spec.replicaSpecs;
  const template = { ...Worker!.template, spec };
  return { ...job, spec: { ...job.spec, replicaSpecs: { Worker: { ...Worker!, template } } } };
};

test("a pod that its cluster refuses as wrong ends the job, on record before anything is cleaned up", async () => {
  const uid = admitted({ kind: "Job" }, workersAsk({ requests: { cpu: "2" }, limits: { cpu: "1" } }));
  start();
  await reaches(uid, "FAILED");
  const { failure } = statusOf(uid);
  assert.deepEqual([failure?.code, failure?.kind], ["BadTaskFormat", "USER"]);
  assert.match(failure?.message ?? "", /refuses pod .*-worker-0: .*must be less than or equal to cpu limit/);
  await until(() => store.released.has(`${uid}/1`), "its tokens are released");
});

test("a pod that its namespace's quota refuses waits, a smaller one of the namespace does not", async () => {
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
  const told = () => store.events.filter(({ jobUid, reason }) => jobUid === large && reason === "FailedCreatePod");
  await until(() => told().length > 0, "the large one is told that the quota refuses it");
  const small = asks("1");
  await reaches(small, "RUNNING");
  assert.equal((await podsOf(large)).length, 0);
  assert.equal(statusOf(large).phase, "STARTING");
  await remove(direct, "resourcequotas", "cpu");
  await reaches(large, "RUNNING");
  assert.deepEqual([statusOf(large).attempts.user, statusOf(large).attempts.system], [0, 0]);
});
