import assert from "node:assert/strict";
import { test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Job } from "../../src/core/job/job.ts";
import type { Admission } from "../../src/core/job/status.ts";
import { JobPhase } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService, type UpdateJobRequestSchema } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { NamespaceService } from "../../src/gen/gangway/v1/namespace_service_pb.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

const { method } = JobService;
type Update = MessageInitShape<typeof UpdateJobRequestSchema>;

const update = (job: object, ...paths: string[]) => ({ job, updateMask: { paths } }) as Update;
const named = (more: object = {}) => ({ metadata: { name: "mnist", ...more } });
const REPLICAS = "spec.replica_specs.*.replicas";
const workers = (replicas: number) => ({ ...named(), spec: { replicaSpecs: { Worker: { replicas } } } });

const live: Admission = {
  number: 1,
  cluster: "west",
  admitTimeMs: 1,
  members: { Master: 1, Worker: 2 },
  flavors: {},
  flavorLabels: {},
  state: "live",
  tokensReleasedMs: null,
  goneMs: null,
  belowMinSinceMs: null,
};

test("the fields that the mask names change in one step, and no others", async (t) => {
  const { call, woken } = await startFixture(t);
  const created = await call(method.createJob, { job: pytorchJob() });
  const job = {
    metadata: { name: "mnist", resourceVersion: "1", labels: { team: "nlp" }, annotations: { not: "read" } },
    spec: { priority: 9, replicaSpecs: { worker: { replicas: 5 } }, runPolicy: { suspend: true, backoffLimit: 1 } },
  };
  const { ok } = await call(
    method.updateJob,
    update(job, "spec.priority", REPLICAS, "spec.run_policy.suspend", "metadata.labels"),
  );
  const { spec, metadata, status } = ok!.job!;
  assert.deepEqual([spec?.priority, spec?.runPolicy?.suspend], [9, true]);
  assert.deepEqual([spec?.replicaSpecs["Worker"]?.replicas, spec?.replicaSpecs["Master"]?.replicas], [5, 1]);
  assert.deepEqual([metadata?.labels, metadata?.annotations, metadata?.resourceVersion], [{ team: "nlp" }, {}, "2"]);
  assert.deepEqual(
    [spec?.runPolicy?.backoffLimit, spec?.replicaSpecs["Worker"]?.template !== undefined],
    [undefined, true],
  );
  assert.deepEqual([status?.minAvailable, status?.totalReplicas], [6, 6], "a minimum of all stays one of all");
  assert.deepEqual([woken.planner, woken.jobs], [2, [created.ok!.job!.metadata!.uid]]);
});

test("a repeated update changes nothing, a stale version is refused, masked fields default", async (t) => {
  const { call, woken } = await startFixture(t);
  await call(method.createJob, { job: pytorchJob("mnist", { priority: 4 }) });
  const once = await call(method.updateJob, update(workers(3), "spec.replica_specs.Worker.replicas"));
  assert.equal(once.ok?.job?.metadata?.resourceVersion, "2");
  const again = await call(method.updateJob, update(workers(3), REPLICAS));
  assert.equal(again.ok?.job?.metadata?.resourceVersion, "2");
  assert.equal(woken.jobs.length, 1);
  const stale = await call(method.updateJob, update({ ...named({ resourceVersion: "1" }) }, "spec.priority"));
  assert.deepEqual([stale.error?.code, stale.error?.reason], ["ABORTED", "STALE_RESOURCE_VERSION"]);
  const cleared = await call(
    method.updateJob,
    update(named({ resourceVersion: "2" }), "spec.priority", "metadata.labels"),
  );
  assert.deepEqual([cleared.ok?.job?.spec?.priority, cleared.ok?.job?.metadata?.labels], [0, {}]);
});

test("a job that has ended, is ending, or cannot be resized while it is admitted stays unchanged", async (t) => {
  const { call, store } = await startFixture(t);
  await call(method.createJob, { job: pytorchJob() });
  const { job } = store.jobs.get("default/mnist")!;
  const refusals: [Partial<Job>, string][] = [
    [{ admissions: [live], status: { ...job.status, phase: "RUNNING" } }, "JOB_SIZE_FIXED"],
    [{ cancel: { reason: "", atMs: 1 } }, "JOB_ENDING"],
    [{ deleteTimeMs: 1 }, "JOB_ENDING"],
    [{ status: { ...job.status, phase: "FAILED", completionTimeMs: 1 } }, "JOB_TERMINAL"],
  ];
  for (const [changed, type] of refusals) {
    store.put({ ...job, ...changed });
    const { error } = await call(method.updateJob, update(workers(7), REPLICAS));
    assert.deepEqual([error?.code, error?.precondition], ["FAILED_PRECONDITION", type]);
    assert.equal(store.jobs.get("default/mnist")?.job.version, 1);
  }
  store.put({ ...job, admissions: [{ ...live, state: "undone" }], status: { ...job.status, phase: "SUSPENDED" } });
  assert.equal(
    (await call(method.updateJob, update(workers(7), REPLICAS))).error,
    null,
    "a suspended job can be resized",
  );
});

test("a job that is set aside is resumed although it is not suspended, three times a day", async (t) => {
  const { call, store } = await startFixture(t);
  await call(method.createJob, { job: pytorchJob() });
  const resume = () => call(method.updateJob, update(named(), "spec.run_policy.suspend"));
  const { job } = store.jobs.get("default/mnist")!;
  const setAside = { sinceMs: 1, reason: "BlocksWorkers", message: "It is set aside." };
  store.put({ ...job, status: { ...job.status, setAside } });
  const { ok } = await resume();
  assert.equal(ok?.job?.metadata?.resourceVersion, "2");
  const after = store.jobs.get("default/mnist")!.job;
  assert.equal(after.status.setAside, undefined);
  assert.equal(after.status.setAsideResumesMs?.length, 1);
  assert.equal((await resume()).ok?.job?.metadata?.resourceVersion, "2", "repeating it changes nothing more");
});

type Case = { readonly request: Update; readonly fields: readonly string[]; readonly says?: RegExp };
const cases: Record<string, Case> = {
  "an empty request": { request: {}, fields: ["update_mask"] },
  "no job": { request: { updateMask: { paths: ["spec.priority"] } }, fields: ["job"] },
  "no mask": { request: { job: named() }, fields: ["update_mask"] },
  "an empty mask": { request: update(named()), fields: ["update_mask"], says: /spec\.run_policy\.suspend/ },
  "no name": { request: update({ metadata: {} }, "spec.priority"), fields: ["job.metadata.name"] },
  "an invalid name": { request: update(named({ name: "My_Job" }), "spec.priority"), fields: ["job.metadata.name"] },
  "a version that is not a number": {
    request: update(named({ resourceVersion: "one" }), "spec.priority"),
    fields: ["job.metadata.resource_version"],
  },
  "paths that are not fields of a job": {
    request: update(named(), "spec.colour", "", "*", "spec.priority.more", "spec..priority"),
    fields: [0, 1, 2, 3, 4].map((at) => `update_mask.paths[${at}]`),
    says: /spec\.colour is not a field of a job/,
  },
  "immutable fields": {
    request: update(
      named(),
      "metadata.name",
      "spec",
      "spec.kind",
      "spec.run_policy.backoff_limit",
      "spec.kind_spec.nprocPerNode",
      "spec.replica_specs.*.template",
      "spec.replica_specs.*.restart_policy",
      "status.phase",
    ),
    fields: [0, 1, 2, 3, 4, 5, 6, 7].map((at) => `update_mask.paths[${at}]`),
    says: /metadata\.name cannot change after the job was created/,
  },
  "omitted replica specs": { request: update(named(), REPLICAS), fields: ["job.spec.replica_specs"] },
  "an omitted replica spec of a masked type": {
    request: update(workers(3), "spec.replica_specs.Master.replicas"),
    fields: ["job.spec.replica_specs[Master].replicas"],
  },
  "a replica type without a number": {
    request: update({ ...named(), spec: { replicaSpecs: { Worker: {} } } }, REPLICAS),
    fields: ["job.spec.replica_specs[Worker].replicas"],
  },
  "too few and too many replicas": {
    request: update(
      { ...named(), spec: { replicaSpecs: { Worker: { replicas: -1 }, Master: { replicas: 10_001 } } } },
      REPLICAS,
    ),
    fields: ["job.spec.replica_specs[Master].replicas", "job.spec.replica_specs[Worker].replicas"],
  },
  "more masters than the kind allows": {
    request: update({ ...named(), spec: { replicaSpecs: { Master: { replicas: 2 } } } }, REPLICAS),
    fields: ["job.spec.replica_specs[Master].replicas"],
    says: /at most 1/,
  },
  "no replica at all": {
    request: update(
      { ...named(), spec: { replicaSpecs: { Master: { replicas: 0 }, Worker: { replicas: 0 } } } },
      REPLICAS,
    ),
    fields: ["job.spec.replica_specs"],
  },
  "a replica type that the job does not have": {
    request: update({ ...named(), spec: { replicaSpecs: { PS: { replicas: 1 } } } }, REPLICAS),
    fields: ["job.spec.replica_specs[PS]"],
    says: /types are: Master, Worker/,
  },
  "a replica type twice, in different case": {
    request: update(
      { ...named(), spec: { replicaSpecs: { Worker: { replicas: 1 }, worker: { replicas: 2 } } } },
      REPLICAS,
    ),
    fields: ["job.spec.replica_specs[worker]"],
  },
  "invalid labels": {
    request: update(named({ labels: { "a b": "x", "gangway.dev/attempt": "1" } }), "metadata.labels"),
    fields: ["job.metadata.labels[a b]"],
  },
  "reserved labels": {
    request: update(named({ labels: { "gangway.dev/attempt": "1" } }), "metadata.labels"),
    fields: ["job.metadata.labels[gangway.dev/attempt]"],
  },
  "a label that names another queue": {
    request: update(named({ labels: { "kueue.x-k8s.io/queue-name": "other" } }), "metadata.labels"),
    fields: ["job.metadata.labels[kueue.x-k8s.io/queue-name]"],
    says: /cannot change/,
  },
};

for (const [name, { request, fields, says }] of Object.entries(cases)) {
  test(`${name}: refused, and nothing changes`, async (t) => {
    const { call, store } = await startFixture(t);
    await call(method.createJob, { job: pytorchJob() });
    const { error } = await call(method.updateJob, request);
    assert.equal(error?.code, "INVALID_ARGUMENT", JSON.stringify(error));
    assert.deepEqual([...error.fields.map(({ field }) => field)].sort(), [...fields].sort(), error.message);
    if (says !== undefined) assert.match(error.message, says);
    assert.equal(store.jobs.get("default/mnist")?.job.version, 1);
  });
}

test("an unknown job is not found", async (t) => {
  const { call } = await startFixture(t);
  const { error } = await call(method.updateJob, update(named(), "spec.priority"));
  assert.deepEqual([error?.code, error?.resource], ["NOT_FOUND", "default/mnist"]);
});

test("a job may be created suspended: it has no position in its queue, and explain says why", async (t) => {
  const { call } = await startFixture(t);
  const { ok } = await call(method.createJob, { job: pytorchJob("mnist", { runPolicy: { suspend: true } }) });
  assert.equal(ok?.job?.status?.phase, JobPhase.SUSPENDED);
  assert.deepEqual(
    ok.job.status.conditions.map(({ type, status }) => [type, status]),
    [
      ["Created", "True"],
      ["Suspended", "True"],
    ],
  );
  assert.equal(ok.job.status.waiting, undefined);
  const explained = await call(method.explainJob, { name: "mnist" });
  assert.deepEqual(
    [explained.ok?.summary, explained.ok?.reason, explained.ok?.position],
    ["default/mnist is suspended: it is not admitted until it is resumed", "PyTorchJobSuspended", 0],
  );
  const listed = await call(method.listJobs, { filter: { phases: [JobPhase.SUSPENDED] } });
  assert.equal(listed.ok?.jobs.length, 1);
});

test("a job that a newer pod policy refuses keeps running, and may become smaller, but not larger", async (t) => {
  const { call, store } = await startFixture(t);
  const policed = (allow: readonly string[]) =>
    call(NamespaceService.method.updateNamespace, { namespace: { name: "default", podPolicy: { allow: [...allow] } } });
  assert.equal((await policed(["host-network"])).error, null);
  const template = { spec: { hostNetwork: true, containers: [{ name: "pytorch", image: "i" }] } };
  const replicaSpecs = { Master: { template }, Worker: { replicas: 2, template } };
  const made = await call(method.createJob, { job: { ...pytorchJob(), spec: { kind: "PyTorchJob", replicaSpecs } } });
  assert.equal(made.error, null);
  await policed([]);
  const wanted: readonly [object, string, boolean][] = [
    [workers(1), REPLICAS, true],
    [{ ...named({ labels: { team: "nlp" } }) }, "metadata.labels", true],
    [{ ...named(), spec: { runPolicy: { suspend: true } } }, "spec.run_policy.suspend", true],
    [{ ...named(), spec: { priority: -1 } }, "spec.priority", true],
    [{ ...named(), spec: { runPolicy: { suspend: false } } }, "spec.run_policy.suspend", false],
    [workers(5), REPLICAS, false],
    [{ ...named(), spec: { priority: 9 } }, "spec.priority", false],
  ];
  for (const [change, path, isAllowed] of wanted) {
    const { error } = await call(method.updateJob, update(change, path));
    const field = "job.spec.replica_specs[Master].template.spec.hostNetwork";
    assert.equal(error?.fields[0]?.field ?? null, isAllowed ? null : field, path);
  }
  assert.equal(store.jobs.get("default/mnist")?.job.spec.priority, -1);
});
