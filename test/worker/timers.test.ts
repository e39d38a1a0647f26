import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../src/core/job/job.ts";
import { changeJob, type WantedChange } from "../../src/core/kinds/change-job.ts";
import { fastClock, until } from "../cluster/harness.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { count, type GangOptions, gangOf, leftOf } from "./harness.ts";
import { workerScene } from "./scene.ts";

/** The clock of these tests runs sixty times as fast as ours. */
const time = fastClock(60);
const { direct, store, running, start, admit } = await workerScene(time);

function admitted(options: GangOptions, changed: (job: Job) => Job = (job) => job): string {
  return admit(changed(gangOf({ run: "forever", workers: 2, ...options })));
}

/** Changes a job as the service does. */
function change(uid: string, wanted: Omit<WantedChange, "version">): void {
  store.change(uid, (job) => {
    const decided = changeJob(job, OWN_KINDS.kindOf(job.spec.kind)!, { version: null, ...wanted }, time.nowMs());
    assert.equal(decided.kind, "changed");
    return "event" in decided ? decided.job : job;
  });
  for (const { worker } of running) worker.wake(uid);
}

const phaseOf = (uid: string) => store.job(uid)?.status.phase;
const reaches = (uid: string, phase: string) => until(() => phaseOf(uid) === phase, `${uid} is ${phase}`);
const lives = (seconds: number) => (job: Job) => {
  return { ...job, spec: { ...job.spec, runPolicy: { ...job.spec.runPolicy, ttlSecondsAfterFinished: seconds } } };
};

test("the deadline ends a gang without any event", async () => {
  const uid = admitted({ runPolicy: { activeDeadlineSeconds: 40 } });
  start();
  await reaches(uid, "RUNNING");
  await reaches(uid, "FAILED");
  const { failure, completionTimeMs, startTimeMs } = store.job(uid)!.status;
  assert.equal(failure?.code, "DeadlineExceeded");
  assert.ok(Number(completionTimeMs) >= Number(startTimeMs) + 40_000);
});

test("a deadline and a time to live take effect at another worker after the first one is gone", async () => {
  const uid = admitted({ runPolicy: { activeDeadlineSeconds: 60 } }, lives(30));
  const first = start();
  await reaches(uid, "RUNNING");
  await until(() => (store.rows.get(uid)?.recheckAtMs ?? 0) > time.nowMs() + 10_000, "only the deadline is ahead");
  await first.stop();
  start();
  await reaches(uid, "FAILED");
  await running.at(-1)?.stop();
  start();
  await until(() => store.job(uid) === null, "the job is forgotten");
  assert.equal(count(await leftOf(direct, uid)), 0);
});

test("failed pods are restarted after their backoff until the limit, by any worker", async () => {
  const uid = admitted({ kind: "PyTorchJob", workers: 1, run: "2s", runPolicy: { backoffLimit: 3 } }, (job) => {
    const worker = job.spec.replicaSpecs["Worker"]!;
    const metadata = { annotations: { "sim.gangway.dev/run": "2s", "sim.gangway.dev/exit-code": "143" } };
    const failing = { ...worker, restartPolicy: "ExitCode" as const, template: { ...worker.template, metadata } };
    return { ...job, spec: { ...job.spec, replicaSpecs: { Worker: failing } } };
  });
  const first = start();
  await until(() => store.job(uid)?.status.attempts.user === 1, "the first failure is counted");
  await first.stop();
  start();
  await reaches(uid, "FAILED");
  const { attempts, failure } = store.job(uid)!.status;
  assert.deepEqual([attempts.user, attempts.byReplica, failure?.code], [3, { "Worker/0": 4 }, "BackoffLimitExceeded"]);
  const made = store.events.filter(({ jobUid, reason }) => jobUid === uid && reason === "SuccessfulCreatePod");
  assert.equal(made.length, 3, "each attempt was made once");
});

test("a suspended gang leaves nothing behind, and a resumed gang gets a new admission", async () => {
  const uid = admitted({ kind: "PyTorchJob", workers: 2, runPolicy: { cleanPodPolicy: "None" } });
  const { plannerWakes } = start();
  await reaches(uid, "RUNNING");
  change(uid, { suspend: true });
  await reaches(uid, "SUSPENDED");
  await until(() => store.job(uid)?.admissions.length === 0, "its tokens are released and nothing is left");
  assert.equal(count(await leftOf(direct, uid)), 0);
  assert.ok(store.released.has(`${uid}/1`));
  const wakes = plannerWakes();
  change(uid, { suspend: false });
  await reaches(uid, "WAITING");
  assert.ok(plannerWakes() > wakes, "the planner is woken");
  store.change(uid, (job) => ({
    ...job,
    admissions: [{ ...admissionOf(job), number: 2 }],
    status: { ...job.status, phase: "ADMITTED" },
  }));
  running[0]?.worker.wake(uid);
  await reaches(uid, "RUNNING");
  assert.equal((await leftOf(direct, uid)).pods.length, 3);
});

test("a pod whose node is gone is deleted by force, so that a cancelled gang ends", async () => {
  const uid = admitted({ workers: 2 }, (job) => {
    const worker = job.spec.replicaSpecs["Worker"]!;
    const metadata = { annotations: { "sim.gangway.dev/run": "forever", "sim.gangway.dev/termination-grace": "10h" } };
    const template = {
      ...worker.template,
      metadata,
      spec: { ...(worker.template["spec"] as object), terminationGracePeriodSeconds: 36_000 },
    };
    return { ...job, spec: { ...job.spec, replicaSpecs: { Worker: { ...worker, template } } } };
  });
  const overdue = { deletionTimeMs: 1 };
  start({
    wrap: (clusters) => ({
      ...clusters,
      observe: (job) =>
        clusters.observe(job)?.map((seen) => ({
          ...seen,
          pods: seen.pods.map((pod) => (pod.deleting ? { ...pod, ...overdue, nodeGone: true } : pod)),
        })) ?? null,
    }),
  });
  await reaches(uid, "RUNNING");
  store.cancel(uid);
  await until(() => store.released.has(`${uid}/1`), "its tokens are released");
  assert.equal((await leftOf(direct, uid)).pods.length, 0);
});

function admissionOf(job: Job) {
  return {
    number: 1,
    cluster: "sim",
    admitTimeMs: time.nowMs(),
    members: Object.fromEntries(Object.entries(job.spec.replicaSpecs).map(([role, { replicas }]) => [role, replicas])),
    flavors: {},
    flavorLabels: {},
    state: "live" as const,
    tokensReleasedMs: null,
    goneMs: null,
    belowMinSinceMs: time.nowMs(),
  };
}
