import assert from "node:assert/strict";
import { test } from "node:test";
import { LABEL } from "../../src/core/job/labels.ts";
import type { JobPhase } from "../../src/core/job/status.ts";
import {
  clientOf,
  configMap,
  create,
  fastClock,
  gpuNodes,
  INSTALLATION,
  remove,
  startProxy,
  startSim,
  until,
} from "../cluster/harness.ts";
import { count, type GangOptions, gangOf, leftOf, runWorker } from "./harness.ts";
import { MemoryStore } from "./memory-store.ts";
import { workerScene } from "./scene.ts";

/** Fast, because a worker waits for seconds before it looks again. */
const time = fastClock(10);
const { sim, direct, store, running, start, admit } = await workerScene(time);

/** Submits an admitted job. Returns its uid. */
function admitted(options?: GangOptions): string {
  return admit(gangOf(options));
}

const phaseOf = (uid: string) => store.job(uid)?.status.phase;
const reaches = (uid: string, phase: JobPhase) => until(() => phaseOf(uid) === phase, `${uid} is ${phase}`);
const eventsOf = (uid: string, reason: string) =>
  store.events.filter((one) => one.jobUid === uid && one.reason === reason);

/** Waits until the job has ended, its tokens are released and nothing of it is left. */
async function isOver(uid: string): Promise<void> {
  await until(() => store.released.has(`${uid}/1`), `the tokens of ${uid} are released`);
  await until(async () => count(await leftOf(direct, uid)) === 0, `nothing is left of ${uid}`);
  await until(() => store.job(uid)?.admissions[0]?.goneMs !== null, `the record of ${uid} says that nothing is left`);
}

test("a gang is created, runs, succeeds, is cleaned up and releases its tokens once", async () => {
  // So long that a busy machine sees it run.
  const uid = admitted({ kind: "PyTorchJob", workers: 3, run: "60s" });
  const { plannerWakes } = start();
  await reaches(uid, "RUNNING");
  const made = await leftOf(direct, uid);
  assert.deepEqual([made.pods.length, made.configmaps.length], [4, 1]);
  assert.ok(made.services.length > 0);
  await reaches(uid, "SUCCEEDED");
  await isOver(uid);
  assert.equal(eventsOf(uid, "SuccessfulCreatePod").length, 4);
  assert.equal(eventsOf(uid, "SuccessfulDeletePod").length, 4);
  assert.ok(store.notes <= 8, `events of one step are appended together, not in ${store.notes} calls`);
  assert.ok(plannerWakes() >= 1);
});

test("a step of a finished job writes nothing", async () => {
  const uid = admitted({ workers: 2, runPolicy: { cleanPodPolicy: "None" } });
  const { worker, clusters } = start();
  await reaches(uid, "SUCCEEDED");
  await until(() => store.released.has(`${uid}/1`), "tokens released");
  await until(() => store.rows.get(uid)?.recheckAtMs === null, "nothing is pending");
  const { writes, notes } = store;
  assert.equal(clusters.seenJobs().includes(uid), true, "the policy keeps its pods");
  for (let looks = 0; looks < 5; looks++) {
    worker.wake(uid);
    await worker.runOnce();
  }
  assert.deepEqual([store.writes, store.notes], [writes, notes]);
});

test("a running gang that is cancelled ends and is cleaned up", async () => {
  const uid = admitted({ run: "forever" });
  start();
  await reaches(uid, "RUNNING");
  store.cancel(uid);
  await reaches(uid, "CANCELLED");
  await isOver(uid);
});

test("a gang that is preempted leaves its cluster, and runs again as the attempt that it was", async () => {
  const uid = admitted({ kind: "PyTorchJob", workers: 2, run: "forever" });
  const { worker } = start();
  await reaches(uid, "RUNNING");
  const message = "it was preempted for ml/train, whose queue takes back its own quota";
  const eviction = { admission: 1, reason: "Preempted", message, preemption: "InCohortReclamation" } as const;
  const again = { user: 1, byReplica: { "Worker/0": 2 } };
  store.change(uid, ({ status, ...job }) => {
    return { ...job, status: { ...status, eviction, attempts: { ...status.attempts, ...again } } };
  });
  worker.wake(uid);
  await reaches(uid, "WAITING");
  await until(() => store.released.has(`${uid}/1`), "its tokens are released");
  await until(async () => count(await leftOf(direct, uid)) === 0, "nothing is left of it");
  await until(() => store.job(uid)?.admissions.length === 0, "its record says that nothing is left");
  const { conditions, attempts, backoff } = store.job(uid)?.status ?? assert.fail();
  const preempted = conditions.find(({ type }) => type === "Preempted");
  assert.deepEqual([preempted?.status, preempted?.reason], ["True", "InCohortReclamation"]);
  assert.deepEqual([attempts.user, attempts.byReplica, attempts.preemptions], [1, again.byReplica, 1]);
  assert.equal(backoff?.why, message);
  assert.equal(eventsOf(uid, "PyTorchJobPreempted").length, 1);
  store.admit(uid, "sim");
  worker.wake(uid);
  await reaches(uid, "RUNNING");
  assert.deepEqual(store.job(uid)?.status.attempts.byReplica, again.byReplica);
});

test("tokens are kept for pods that the watch does not show", async () => {
  const uid = admitted({ run: "forever" });
  let isDeaf = false;
  const seen = { pods: [], services: [], configMaps: [], cluster: "sim" };
  start({
    wrap: (clusters) => ({
      ...clusters,
      observe: (job) => (isDeaf ? [seen] : clusters.observe(job)),
    }),
  });
  await reaches(uid, "RUNNING");
  isDeaf = true;
  store.cancel(uid);
  await reaches(uid, "CANCELLED");
  await until(async () => {
    running[0]?.worker.wake(uid);
    const left = await leftOf(direct, uid);
    assert.ok(left.pods.length === 0 || !store.released.has(`${uid}/1`), "released while pods run");
    return left.pods.length === 0;
  }, "its pods are deleted all the same, since a list shows them");
  await isOver(uid);
});

test("a deleted job is forgotten once nothing is left of it", async () => {
  const uid = admitted({ run: "forever" });
  start();
  await reaches(uid, "RUNNING");
  store.change(uid, (job) => ({ ...job, deleteTimeMs: time.nowMs() }));
  await until(() => store.job(uid) === null, "the record is gone");
  assert.equal(count(await leftOf(direct, uid)), 0);
  assert.ok(store.released.has(`${uid}/1`));
});

test("a restarted worker continues with the pods that it finds", async () => {
  const uid = admitted({ run: "forever", workers: 6 });
  const first = start();
  await reaches(uid, "RUNNING");
  await first.stop();
  const before = await leftOf(direct, uid);
  const second = start();
  await until(() => second.cluster.synced(), "the clusters are listed");
  store.change(uid, (job) => job);
  second.worker.wake(uid);
  await second.worker.runOnce();
  assert.deepEqual(await leftOf(direct, uid), before);
  store.cancel(uid);
  await isOver(uid);
});

test("a crash between record and act loses nothing: the next worker does what was recorded", async () => {
  const uid = admitted({ run: "1s", workers: 5 });
  let acted = 0;
  start({
    wrap: (clusters, stop) => ({
      ...clusters,
      act: async (action, signal) => {
        acted += 1;
        if (acted < 4) return clusters.act(action, signal);
        stop();
        return { kind: "failed", reason: "Unreachable", message: "crashed" };
      },
    }),
  });
  await until(() => acted >= 4, "crashed while it acted");
  assert.notEqual(phaseOf(uid), "ADMITTED", "the decision is durable");
  assert.ok((await leftOf(direct, uid)).pods.length < 5);
  // The record says when to look again. The test does not wait for that time but moves it.
  store.change(uid, (job) => job);
  start();
  await reaches(uid, "SUCCEEDED");
  await isOver(uid);
});

test("a worker that has lost its lease records nothing and changes no cluster", async () => {
  const uid = admitted({ run: "forever" });
  const acts: string[] = [];
  const first = start({
    wrap: (clusters) => ({
      ...clusters,
      act: (action, signal) => {
        acts.push(action.kind);
        return clusters.act(action, signal);
      },
    }),
  });
  await reaches(uid, "RUNNING");
  store.take("somebody else");
  const { length } = acts;
  store.cancel(uid);
  first.worker.wake(uid);
  await first.worker.runOnce();
  assert.equal(phaseOf(uid), "RUNNING");
  assert.equal(acts.length, length);
  assert.equal((await leftOf(direct, uid)).pods.length, 4);
  store.free();
  start();
  await isOver(uid);
  assert.equal(phaseOf(uid), "CANCELLED");
});

test("no cluster is changed while the record is refused", async () => {
  const uid = admitted({ run: "forever" });
  const port = store.port();
  let refused = 0;
  let refuse = true;
  store.port = () => ({
    ...port,
    record: async (...args) => {
      if (!refuse) return port.record(...args);
      refused += 1;
      return "stale";
    },
  });
  start();
  await until(() => refused >= 12, "refused again and again");
  assert.equal(count(await leftOf(direct, uid)), 0);
  refuse = false;
  await reaches(uid, "RUNNING");
});

test("a job is not acted on before its cluster is listed, and is not retried in a tight loop", async () => {
  const uid = admitted({ run: "forever" });
  let listed = false;
  let asked = 0;
  start({
    wrap: (clusters) => ({
      ...clusters,
      observe: (job) => {
        asked += 1;
        return listed ? clusters.observe(job) : null;
      },
    }),
  });
  await until(() => asked >= 3, "asked for");
  assert.equal(phaseOf(uid), "ADMITTED");
  assert.equal(count(await leftOf(direct, uid)), 0);
  listed = true;
  await reaches(uid, "RUNNING");
});

test("objects of a job without a record are deleted", async () => {
  const labels = { [LABEL.jobUid]: "long-gone", [LABEL.admission]: "3", [LABEL.installation]: INSTALLATION };
  const spec = { containers: [{ name: "main", image: "busybox" }] };
  await create(direct, "configmaps", configMap("gone-admission-3", labels));
  await create(direct, "pods", { apiVersion: "v1", kind: "Pod", metadata: { name: "gone-worker-0", labels }, spec });
  start();
  await until(async () => count(await leftOf(direct, "long-gone")) === 0, "swept");
});

test("a quota that refuses pods is reported once, and the missing pods are created once it has room", async () => {
  const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "few" }, spec: { hard: { pods: "2" } } };
  await create(direct, "resourcequotas", quota);
  const uid = admitted({ run: "forever" });
  start();
  await until(() => eventsOf(uid, "FailedCreatePod").length > 0, "an event reports the refusal");
  const [refused] = eventsOf(uid, "FailedCreatePod");
  assert.equal(refused?.type, "Warning");
  assert.match(refused?.message ?? "", /exceeded quota/);
  await remove(direct, "resourcequotas", "few");
  await reaches(uid, "RUNNING");
  const messages = eventsOf(uid, "FailedCreatePod").map(({ message }) => message);
  assert.equal(new Set(messages).size, messages.length, "no message is repeated within a minute");
});

test("a worker stops at once although its calls are not answered", async (t) => {
  const proxy = await startProxy(sim.url, ({ method }) => (method === "POST" ? "hang" : "pass"));
  t.after(() => proxy.close());
  const uid = admitted();
  const one = runWorker({ ...sim, kubeconfig: () => proxy.kubeconfig }, store);
  await until(() => proxy.seen.some(({ method }) => method === "POST"), "a call hangs");
  await one.stop();
  assert.equal(phaseOf(uid), "STARTING");
  assert.equal(eventsOf(uid, "FailedCreateAnchor").length, 0, "a stopped worker reports no failed call");
});

test("a store that is away is reported, and the worker waits for it", async () => {
  const uid = admitted({ run: "2s" });
  const { errors } = start();
  await until(() => phaseOf(uid) !== "ADMITTED", "started");
  store.breakDown(5);
  await reaches(uid, "SUCCEEDED");
  assert.ok(errors.length > 0);
  await isOver(uid);
});

const faults = {
  "throttled writes": { throttleWrites: 0.1 },
  "writes that fail or conflict": { failWrites: 0.05, conflictWrites: 0.05, unavailableWrites: 0.05 },
  "calls whose connection breaks before or after they take effect": { dropBeforeWrite: 0.05, dropAfterWrite: 0.1 },
  "watches that end, expire and lag": { endWatch: 0.2, expireWatch: 0.3, delayWatchMs: 30 },
};

test("with faults of every kind a gang still succeeds, is cleaned up and gives its tokens back, once", {
  concurrency: true,
}, async (t) => {
  await Promise.all(
    Object.entries(faults).map(([name, drawn], index) =>
      t.test(name, async () => {
        const fast = fastClock(5);
        const own = await startSim(gpuNodes(2), index + 10, fast);
        const client = clientOf(own.kubeconfig());
        const here = new MemoryStore(fast);
        const job = gangOf({ kind: "PyTorchJob", workers: 3, run: "1s" });
        here.add(job);
        here.admit(job.uid, "sim");
        own.setFaults(drawn);
        const one = runWorker(own, here, { time: fast });
        try {
          await until(() => here.released.has(`${job.uid}/1`), "tokens released");
          assert.equal(here.job(job.uid)?.status.phase, "SUCCEEDED");
          assert.equal(here.job(job.uid)?.status.attempts.user, 0);
          await until(async () => count(await leftOf(client, job.uid)) === 0, "nothing is left");
        } finally {
          await one.stop();
          await client.close();
          await own.close();
        }
      }),
    ),
  );
});
