/** Wishes for topology, from a request to the record and back to its caller. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { cluster, nodes } from "../core/plan/plan-world.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob, template } from "./jobs.ts";

const { method } = JobService;
const RECORD = {
  uid: null,
  simulated: false,
  observedMs: 1,
  version: 1,
  createTimeMs: 1,
  gangScheduler: "none",
} as const;
const REQUIRED = "kueue.x-k8s.io/podset-required-topology";

function annotated(key: string, text: string) {
  return { ...template(), metadata: { annotations: { [key]: text } } };
}

/** A service with a cluster of blocks and racks. */
async function served(t: Parameters<typeof startFixture>[0]) {
  const fixture = await startFixture(t);
  const topology = ["block", "rack"].map((name) => ({ name, label: `example.com/${name}` }));
  const labels = { gpu: "h100", "example.com/block": "b1", "example.com/rack": "r1" };
  fixture.store.clusters.set("east", {
    ...cluster("east", { nodes: nodes(2, "h100", { labels }) }),
    ...RECORD,
    topology,
  });
  return fixture;
}

test("a wish is recorded and shown as it was sent, and a repeated call finds the same job", async (t) => {
  const { call, store } = await served(t);
  const topology = { required: "block" };
  const wished = { preferred: "rack", slices: [{ level: "rack", size: 4 }] };
  const replicaSpecs = {
    Master: { template: template() },
    Worker: { replicas: 8, template: template(), topology: wished },
  };
  const job = pytorchJob("near", { replicaSpecs, placement: { topology } });
  const created = await call(method.createJob, { job });
  assert.equal(created.error, null);
  assert.deepEqual(
    created.ok?.warnings.map(({ field }) => field),
    [],
  );
  const { spec } = store.jobs.get("default/near")?.job ?? assert.fail("no job");
  assert.deepEqual(spec.placement, { clusters: [], clusterSelector: {}, gpuModels: [], topology });
  assert.deepEqual([spec.replicaSpecs["Worker"]?.topology, spec.replicaSpecs["Master"]?.topology], [wished, undefined]);
  const { ok } = await call(method.getJob, { name: "near" });
  const shown = ok?.job?.spec;
  assert.deepEqual(shown?.placement?.topology?.required, "block");
  const worker = shown?.replicaSpecs["Worker"]?.topology;
  assert.deepEqual([worker?.required, worker?.preferred], ["", "rack"]);
  assert.deepEqual(
    worker?.slices.map(({ level, size }) => [level, size]),
    [["rack", 4]],
  );
  assert.equal(shown?.replicaSpecs["Master"]?.topology, undefined);
  assert.equal((await call(method.createJob, { job })).error, null, "the same call again");
  const other = pytorchJob("near", { replicaSpecs, placement: { topology: { required: "rack" } } });
  const taken = await call(method.createJob, { job: other });
  assert.equal(taken.error?.code, "ALREADY_EXISTS");
  assert.match(taken.error?.message ?? "", /placement/, "another wish makes another job");
});

test("an empty wish is none", async (t) => {
  const { call, store } = await served(t);
  const replicaSpecs = { Worker: { replicas: 2, template: template(), topology: {} } };
  await call(method.createJob, { job: pytorchJob("plain", { replicaSpecs, placement: { topology: {} } }) });
  const { spec } = store.jobs.get("default/plain")?.job ?? assert.fail("no job");
  assert.deepEqual(spec.placement, { clusters: [], clusterSelector: {}, gpuModels: [] });
  assert.ok(!("topology" in (spec.replicaSpecs["Worker"] ?? {})));
});

test("a wrong wish is refused by its field, and changes nothing", async (t) => {
  const { call, store } = await served(t);
  const job = pytorchJob("bad", {
    replicaSpecs: {
      Worker: { replicas: 8, template: template(), topology: { slices: [{ level: "rack", size: 3 }] } },
      Master: { template: annotated(REQUIRED, "no level") },
    },
    placement: { topology: { required: "rack", preferred: "block" } },
  });
  const { error } = await call(method.createJob, { job });
  assert.equal(error?.code, "INVALID_ARGUMENT");
  assert.deepEqual(
    error?.fields.map(({ field }) => field),
    [
      "job.spec.placement.topology.preferred",
      `job.spec.replica_specs[Master].template.metadata.annotations["${REQUIRED}"]`,
      "job.spec.replica_specs[Worker].topology.slices[0].size",
    ],
  );
  assert.equal(store.jobs.size, 0);
});

test("more slices than a request may have are refused before they are read", async (t) => {
  const { call } = await served(t);
  const slices = Array.from({ length: 17 }, () => ({ level: "rack", size: 1 }));
  const replicaSpecs = { Worker: { replicas: 2, template: template(), topology: { slices } } };
  const { error } = await call(method.createJob, { job: pytorchJob("many", { replicaSpecs }) });
  assert.equal(error?.code, "INVALID_ARGUMENT");
  assert.match(error?.fields[0]?.field ?? "", /topology.slices$/);
});

test("an annotation of Kueue becomes the wish of its replica type, which templates cannot change later", async (t) => {
  const { call, store } = await served(t);
  const replicaSpecs = { Worker: { replicas: 2, template: annotated(REQUIRED, "example.com/rack") } };
  const job = pytorchJob("kueue", { replicaSpecs, runPolicy: { suspend: true } });
  const created = await call(method.createJob, { job });
  assert.deepEqual(created.ok?.job?.spec?.replicaSpecs["Worker"]?.topology?.required, "example.com/rack");
  const before = JSON.stringify(store.jobs.get("default/kueue"));
  const change = (annotations: Readonly<Record<string, string>>) =>
    call(method.updateJob, {
      job: {
        metadata: { name: "kueue" },
        spec: { replicaSpecs: { Worker: { template: { metadata: { annotations } } } } },
      },
      updateMask: { paths: ["spec.replica_specs.Worker.template"] },
    });
  const moved = await change({ [REQUIRED]: "example.com/block" });
  assert.equal(moved.error?.code, "INVALID_ARGUMENT");
  const field = "job.spec.replica_specs[Worker].template.metadata.annotations";
  assert.deepEqual(
    moved.error?.fields.map((one) => one.field),
    [field],
  );
  assert.equal(JSON.stringify(store.jobs.get("default/kueue")), before);
  assert.equal((await change({ [REQUIRED]: "example.com/rack", note: "x" })).error, null);
});

test("an update cannot change a wish", async (t) => {
  const { call } = await served(t);
  await call(method.createJob, { job: pytorchJob("fixed", { placement: { topology: { required: "rack" } } }) });
  for (const path of ["spec.placement.topology", "spec.replica_specs.Worker.topology"]) {
    const { error } = await call(method.updateJob, {
      job: { metadata: { name: "fixed" } },
      updateMask: { paths: [path] },
    });
    assert.equal(error?.code, "INVALID_ARGUMENT");
    assert.match(error?.fields[0]?.description ?? "", /cannot change after the job was created/);
  }
});

test("a level that no cluster has is a warning, and an error with strict", async (t) => {
  const { call, store } = await served(t);
  const job = pytorchJob("far", { placement: { topology: { required: "row" } } });
  const strict = await call(method.createJob, { job, strict: true });
  const field = "job.spec.placement.topology.required";
  const message = "is row, a level that no cluster has in which the job may run; levels are: block, rack";
  assert.equal(strict.error?.code, "INVALID_ARGUMENT");
  assert.ok(strict.error?.fields.some((one) => one.field === field && one.description === message));
  assert.equal(store.jobs.size, 0);
  const { ok } = await call(method.createJob, { job });
  assert.ok(ok?.warnings.some((one) => one.field === field && one.message === message));
});

test("any wish that is accepted is shown as it was sent", async (t) => {
  const { call } = await served(t);
  const level = fc.constantFrom("block", "rack", "example.com/host");
  const wish = fc.oneof(fc.record({ required: level }), fc.record({ preferred: level }), fc.constant({}));
  const sizes = fc.constantFrom([], [8], [4, 2], [4, 4, 1]);
  let count = 0;
  await fc.assert(
    fc.asyncProperty(wish, wish, sizes, async (ofJob, ofWorker, dividing) => {
      const slices = dividing.map((size, at) => ({ level: `l${at}`, size }));
      const replicaSpecs = { Worker: { replicas: 8, template: template(), topology: { ...ofWorker, slices } } };
      const job = pytorchJob(`j${count++}`, { replicaSpecs, placement: { topology: ofJob } });
      const { ok, error } = await call(method.createJob, { job });
      assert.equal(error, null);
      const plain = (value: unknown) => JSON.parse(JSON.stringify(value ?? {}));
      const { required = "", preferred = "" } = ofJob as Record<string, string>;
      const shown = plain(ok?.job?.spec?.placement?.topology);
      assert.deepEqual([shown.required ?? "", shown.preferred ?? ""], [required, preferred]);
      const worker = plain(ok?.job?.spec?.replicaSpecs["Worker"]?.topology);
      const own = ofWorker as Record<string, string>;
      assert.deepEqual(
        [worker.required ?? "", worker.preferred ?? ""],
        [own["required"] ?? "", own["preferred"] ?? ""],
      );
      const kept = (worker.slices ?? []).map((one: { level: string; size: number }) => [one.level, one.size]);
      assert.deepEqual(
        kept,
        slices.map((one) => [one.level, one.size]),
      );
    }),
    { numRuns: 40 },
  );
});
