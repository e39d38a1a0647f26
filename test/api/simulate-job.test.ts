import assert from "node:assert/strict";
import { test } from "node:test";
import { JobService, PodObstacle_KindSchema, Verdict } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { amounts, cluster, node, nodes } from "../core/plan/plan-world.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";
import { queueRecord } from "./memory-store.ts";

const { method } = JobService;

/** A service with two clusters: `east` has two nodes of eight H100, `west` has one, which is full. */
async function served(t: Parameters<typeof startFixture>[0]) {
  const fixture = await startFixture(t);
  const { store } = fixture;
  const quotas = [{ flavor: "gpu/h100", resource: "nvidia.com/gpu", nominal: 32 }];
  store.queues.set("default", { ...queueRecord("default"), quotas });
  const full = [node("w-0", "h100", { free: amounts(0) })];
  for (const one of [cluster("east", { nodes: nodes(2, "h100") }), cluster("west", { nodes: full })]) {
    const record = {
      uid: null,
      simulated: false,
      observedMs: 1,
      version: 1,
      createTimeMs: 1,
      gangScheduler: "none",
    } as const;
    store.clusters.set(one.name, { ...one, ...record });
  }
  return fixture;
}

/** A job of workers with eight GPUs each. */
function workers(replicas: number, more: Readonly<Record<string, string>> = {}) {
  const resources = { limits: { "nvidia.com/gpu": 8, ...more } };
  const pod = { spec: { containers: [{ name: "pytorch", image: "i", resources }] } };
  return pytorchJob("gpt", { replicaSpecs: { Worker: { replicas, template: pod } } });
}

test("a job that fits is told where, with what it would hold, and nothing is created", async (t) => {
  const { call, store, woken } = await served(t);
  const { ok } = await call(method.simulateJob, { job: workers(2) });
  assert.deepEqual(
    [ok?.verdict, ok?.summary, ok?.reason],
    [Verdict.FITS_NOW, "default/gpt can run now on cluster east", ""],
  );
  const { cluster: where, members, flavors, tokens } = ok?.admission ?? {};
  assert.deepEqual(
    [where, members, flavors, tokens?.map(({ pool, amount }) => [pool, amount])],
    ["east", { Worker: 2 }, { "nvidia.com/gpu": "gpu/h100" }, [["gpu/h100", 16n]]],
  );
  assert.deepEqual(
    ok?.clusters.map((one) => [one.cluster, one.verdict, one.refusal?.reason]),
    [
      ["east", Verdict.FITS_NOW, undefined],
      ["west", Verdict.NEVER, "TooLarge"],
    ],
  );
  assert.deepEqual([store.jobs.size, woken.planner], [0, 0]);
});

test("a job that exists does not stand in the way of its own judgement", async (t) => {
  const { call } = await served(t);
  await call(method.createJob, { job: workers(1) });
  const { ok } = await call(method.simulateJob, { job: workers(2) });
  assert.equal(ok?.verdict, Verdict.FITS_NOW);
});

test("a job that waits or can never run is told why, for each cluster", async (t) => {
  const { call, store } = await served(t);
  store.clusters.set("east", { ...store.clusters.get("east")!, cordoned: true });
  const waits = await call(method.simulateJob, { job: workers(1) });
  assert.deepEqual([waits.ok?.verdict, waits.ok?.reason], [Verdict.WAITS, "NoCapacity"]);
  const summary = /^default\/gpt can run, but not now; it must first wait in the queue "default": it needs 1 pod .*w-0/;
  assert.match(waits.ok?.summary ?? "", summary);
  assert.deepEqual(
    waits.ok?.clusters.map((one) => [one.verdict, one.refusal?.reason]),
    [
      [Verdict.WAITS, "Cordoned"],
      [Verdict.WAITS, "NoCapacity"],
    ],
  );
  const never = await call(method.simulateJob, { job: workers(1, { memory: "2Ti" }) });
  assert.deepEqual([never.ok?.verdict, never.ok?.reason], [Verdict.NEVER, "TooLarge"]);
  assert.equal(
    never.ok?.summary,
    "default/gpt can never run: no node of cluster east can ever take a Worker pod: " +
      "2 nodes lack memory (needs 2Ti, has 256Gi allocatable)",
  );
  const [obstacle] = never.ok?.clusters[0]?.refusal?.blockedPod?.obstacles ?? [];
  assert.deepEqual(
    [PodObstacle_KindSchema.value[obstacle?.kind ?? 0]?.localName, obstacle?.name, obstacle?.need],
    ["RESOURCE", "memory", "2Ti"],
  );
});

test("a job above the limit of its queue can never run, and the quota is named", async (t) => {
  const { call } = await served(t);
  const { ok } = await call(method.simulateJob, { job: workers(5) });
  assert.deepEqual([ok?.verdict, ok?.reason], [Verdict.NEVER, "AboveQuota"]);
  assert.equal(ok?.summary, "default/gpt can never run: needs 40 of gpu/h100; queue default may use 32 at most");
  assert.deepEqual(
    ok?.quotas.map(({ flavor, need, limit }) => [flavor, need, limit]),
    [["gpu/h100", 40n, 32n]],
  );
});

test("a job is checked as for CreateJob, and its warnings are returned", async (t) => {
  const { call } = await served(t);
  const wrong = await call(method.simulateJob, {
    job: pytorchJob("Wrong_Name", { runPolicy: { schedulingPolicy: { queue: "nowhere" } } }),
  });
  assert.equal(wrong.error?.code, "INVALID_ARGUMENT");
  assert.deepEqual(wrong.error?.fields.map(({ field }) => field).sort(), [
    "job.metadata.name",
    "job.spec.run_policy.scheduling_policy.queue",
  ]);
  assert.equal((await call(method.simulateJob, {})).error?.code, "INVALID_ARGUMENT");
  const typo = { spec: { containers: [{ name: "pytorch", image: "i", imagePullPolcy: "Always" }] } };
  const { ok } = await call(method.simulateJob, {
    job: pytorchJob("typo", { replicaSpecs: { Worker: { replicas: 1, template: typo } } }),
  });
  assert.match(ok?.warnings[0]?.field ?? "", /imagePullPolcy$/);
});
