/** Submit says what can-run knows: a job that can never run is created with a warning, or refused with `strict`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { cluster, nodes } from "../core/plan/plan-world.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";
import { queueRecord } from "./memory-store.ts";

const { method } = JobService;
const RECORD = {
  uid: null,
  simulated: false,
  observedMs: 1,
  version: 1,
  createTimeMs: 1,
  gangScheduler: "none",
} as const;

/** A service with a cluster of two nodes with eight H100 each, and queues of these names with so many of them. */
async function served(t: Parameters<typeof startFixture>[0], queues: Readonly<Record<string, number>>) {
  const fixture = await startFixture(t);
  const { store } = fixture;
  for (const [name, nominal] of Object.entries(queues)) {
    const quotas = [{ flavor: "gpu/h100", resource: "nvidia.com/gpu", nominal }];
    store.queues.set(name, { ...queueRecord(name), quotas });
  }
  store.clusters.set("east", { ...cluster("east", { nodes: nodes(2, "h100") }), ...RECORD });
  return fixture;
}

function workers(replicas: number, gpus = 8) {
  const resources = { limits: { "nvidia.com/gpu": gpus } };
  const template = { spec: { containers: [{ name: "pytorch", image: "i", resources }] } };
  return pytorchJob("gpt", { replicaSpecs: { Worker: { replicas, template } } });
}

const LIMIT = "can never run as things are: needs 16 of gpu/h100; queue default may use 8 at most";

test("a job beyond a limit is created with a warning, which names a queue that could take it", async (t) => {
  const { call, store } = await served(t, { default: 8, small: 4, wide: 32 });
  const { ok } = await call(method.createJob, { job: workers(2) });
  assert.deepEqual(
    ok?.warnings.map(({ field, message }) => ({ field, message })),
    [{ field: "job.spec", message: `${LIMIT}; queue wide could take it` }],
  );
  assert.equal(store.jobs.size, 1);
});

test("with strict such a job is refused, also as a part of a batch and as a dry run", async (t) => {
  const { call, store } = await served(t, { default: 8 });
  const { error } = await call(method.createJob, { job: workers(2), strict: true });
  assert.deepEqual([error?.code, error?.fields[0]?.description], ["INVALID_ARGUMENT", LIMIT]);
  const dry = await call(method.createJob, { job: workers(2), strict: true, validateOnly: true });
  assert.equal(dry.error?.code, "INVALID_ARGUMENT");
  const batch = await call(method.batchCreateJobs, {
    requests: [
      { job: workers(2), strict: true },
      { job: { ...workers(1), metadata: { name: "fits" } }, strict: true },
    ],
  });
  assert.deepEqual(
    batch.ok?.results.map(({ result }) => result.case),
    ["error", "response"],
  );
  assert.equal(store.jobs.size, 1);
});

test("a job that no node can ever take is said to be so", async (t) => {
  const { call } = await served(t, { default: 99 });
  const { ok } = await call(method.createJob, { job: workers(1, 16) });
  const [warning] = ok?.warnings ?? [];
  assert.match(warning?.message ?? "", /^can never run as things are: no node of cluster east can ever take a /);
});

test("a job that only waits is no news", async (t) => {
  const { call } = await served(t, { default: 16 });
  for (const name of ["a", "b", "c"]) {
    const { ok } = await call(method.createJob, { job: { ...workers(2), metadata: { name } }, strict: true });
    assert.deepEqual(ok?.warnings, []);
  }
});

test("a limit that was raised counts for the next job like one that could never run", async (t) => {
  const { call, store } = await served(t, { default: 8 });
  const before = await call(method.createJob, { job: workers(2) });
  assert.equal(before.ok?.warnings.length, 1);
  const quotas = [{ flavor: "gpu/h100", resource: "nvidia.com/gpu", nominal: 16 }];
  store.queues.set("default", { ...queueRecord("default"), quotas });
  const after = await call(method.createJob, { job: { ...workers(2), metadata: { name: "later" } }, strict: true });
  assert.deepEqual(after.ok?.warnings, []);
});
