import assert from "node:assert/strict";
import { test } from "node:test";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { toProtoQuotaRefusal } from "../../src/api/job/convert-refusal.ts";
import {
  CleanPodPolicy,
  JobPhase,
  PluginStage,
  RestartPolicy,
  RestartScope,
  TaskPhase,
} from "../../src/gen/gangway/v1/job_pb.ts";
import {
  CreateJobResponse_Outcome,
  JobService,
  JobView,
  PodObstacle_KindSchema,
  QuotaLevel,
} from "../../src/gen/gangway/v1/job_service_pb.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob, template } from "./jobs.ts";

const { method } = JobService;

test("a created job has the defaults of its kind, and is found by name and by uid", async (t) => {
  const { call, woken } = await startFixture(t);
  const created = await call(method.createJob, { job: pytorchJob() });
  assert.equal(created.error, null);
  assert.equal(created.ok.outcome, CreateJobResponse_Outcome.CREATED);
  const { job } = created.ok;
  assert.equal(job?.metadata?.namespace, "default");
  assert.match(job?.metadata?.uid ?? "", /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(job?.spec?.replicaSpecs["Worker"]?.restartPolicy, RestartPolicy.ON_FAILURE);
  assert.equal(job?.spec?.runPolicy?.cleanPodPolicy, CleanPodPolicy.NONE);
  assert.equal(job?.spec?.runPolicy?.restartScope, RestartScope.REPLICA);
  assert.equal(job?.spec?.runPolicy?.backoffLimit, undefined);
  assert.equal(job?.spec?.runPolicy?.schedulingPolicy?.minAvailable, 3);
  assert.equal(job?.spec?.runPolicy?.schedulingPolicy?.queue, "default");
  assert.equal(job?.status?.phase, JobPhase.WAITING);
  assert.deepEqual([job?.status?.minAvailable, job?.status?.totalReplicas], [3, 3]);
  assert.equal(job?.status?.conditions[0]?.reason, "PyTorchJobCreated");
  assert.equal(woken.planner, 1);

  const byName = await call(method.getJob, { name: "mnist" });
  assert.deepEqual(byName.ok?.job?.spec, job?.spec);
  assert.equal(byName.ok?.job?.status?.waiting?.position, 1);
  const byUid = await call(method.getJob, { uid: job!.metadata!.uid, view: JobView.BASIC });
  assert.equal(byUid.ok?.job?.metadata?.name, "mnist");
  assert.equal(byUid.ok?.job?.spec?.replicaSpecs["Worker"]?.template, undefined);
});

test("a request id creates a job exactly once; used for another job, the error names the difference", async (t) => {
  const { call, store } = await startFixture(t);
  const first = await call(method.createJob, { job: pytorchJob(), requestId: "r1" });
  const again = await call(method.createJob, { job: pytorchJob(), requestId: "r1" });
  assert.equal(again.ok?.outcome, CreateJobResponse_Outcome.REPLAYED);
  assert.equal(again.ok?.job?.metadata?.uid, first.ok?.job?.metadata?.uid);
  const other = pytorchJob("mnist", {
    replicaSpecs: { Master: { replicas: 1, template: template() }, Worker: { replicas: 3, template: template() } },
  });
  const reused = await call(method.createJob, { job: other, requestId: "r1" });
  assert.deepEqual([reused.error?.code, reused.error?.reason], ["ALREADY_EXISTS", "REQUEST_ID_REUSED"]);
  assert.match(
    reused.error!.message,
    /job\.spec\.replica_specs\[Worker\]\.replicas is 2 in the existing job and 3 in this one/,
  );
  store.forget(store.jobs.get("default/mnist")!.job);
  const gone = await call(method.createJob, { job: pytorchJob(), requestId: "r1" });
  assert.equal(gone.error?.reason, "JOB_MADE_AND_DELETED");
});

test("the same name with the same spec is UNCHANGED, with another spec it is taken", async (t) => {
  const { call, store } = await startFixture(t);
  await call(method.createJob, { job: pytorchJob() });
  const same = await call(method.createJob, { job: pytorchJob() });
  assert.equal(same.ok?.outcome, CreateJobResponse_Outcome.UNCHANGED);
  const taken = await call(method.createJob, { job: pytorchJob("mnist", { priority: 7 }) });
  assert.deepEqual([taken.error?.code, taken.error?.reason], ["ALREADY_EXISTS", "JOB_NAME_TAKEN"]);
  assert.match(taken.error!.message, /job\.spec\.priority is not set in the existing job and 7 in this one/);
  await call(method.deleteJob, { name: "mnist" });
  const deleting = await call(method.createJob, { job: pytorchJob() });
  assert.deepEqual([deleting.error?.reason, deleting.error?.retries], ["JOB_BEING_DELETED", true]);
  assert.equal(store.jobs.size, 1);
});

test("a dry run answers with the job, and creates none", async (t) => {
  const { call, store, woken } = await startFixture(t);
  const valid = await call(method.createJob, { job: pytorchJob(), validateOnly: true });
  assert.equal(valid.ok?.outcome, CreateJobResponse_Outcome.VALID);
  assert.equal(valid.ok?.job?.spec?.runPolicy?.schedulingPolicy?.queue, "default");
  assert.deepEqual([store.jobs.size, woken.planner], [0, 0]);
});

test("a dry run answers like the real call if the name or the request id is taken", async (t) => {
  const { call, store } = await startFixture(t);
  await call(method.createJob, { job: pytorchJob(), requestId: "r1" });
  const dry = { validateOnly: true };
  const replayed = await call(method.createJob, { ...dry, job: pytorchJob(), requestId: "r1" });
  assert.equal(replayed.ok?.outcome, CreateJobResponse_Outcome.REPLAYED);
  const unchanged = await call(method.createJob, { ...dry, job: pytorchJob() });
  assert.equal(unchanged.ok?.outcome, CreateJobResponse_Outcome.UNCHANGED);
  const taken = await call(method.createJob, { ...dry, job: pytorchJob("mnist", { priority: 1 }) });
  assert.equal(taken.error?.reason, "JOB_NAME_TAKEN");
  assert.deepEqual([store.jobs.size, store.requestIds.size], [1, 1]);
});

test("a generated name is its prefix and a suffix, different each time", async (t) => {
  const { call } = await startFixture(t);
  const job = { ...pytorchJob(), metadata: { generateName: "run-" } };
  const names = await Promise.all(
    [1, 2].map(async () => (await call(method.createJob, { job })).ok?.job?.metadata?.name),
  );
  for (const name of names) assert.match(name ?? "", /^run-[a-z0-9]{6}$/);
  assert.notEqual(names[0], names[1]);
});

test("a closed namespace that does not exist is not found", async (t) => {
  const { call, store } = await startFixture(t);
  store.open = false;
  const job = { ...pytorchJob(), metadata: { name: "mnist", namespace: "nowhere" } };
  const { error } = await call(method.createJob, { job });
  assert.deepEqual([error?.code, error?.reason, error?.resource], ["NOT_FOUND", "NAMESPACE_NOT_FOUND", "nowhere"]);
});

test("pages list every job once, in the requested order", async (t) => {
  const { call } = await startFixture(t);
  for (const name of ["c", "a", "d", "b"]) await call(method.createJob, { job: pytorchJob(name) });
  const names: string[] = [];
  let pageToken = "";
  do {
    const page = await call(method.listJobs, { orderBy: "name", pageSize: 3, pageToken });
    names.push(...(page.ok?.jobs.map((job) => job.metadata?.name ?? "") ?? []));
    assert.equal(page.ok?.totalEstimate, 4);
    pageToken = page.ok?.nextPageToken ?? "";
  } while (pageToken !== "");
  assert.deepEqual(names, ["a", "b", "c", "d"]);
  const none = await call(method.listJobs, { filter: { kinds: ["TFJob"] } });
  assert.deepEqual(none.ok?.jobs, []);
});

test("a page with large templates is shortened so that every client can receive it", async (t) => {
  const { call } = await startFixture(t);
  const large = { spec: { containers: [{ name: "main", image: "x", args: ["y".repeat(900_000)] }] } };
  const spec = { kind: "Job", replicaSpecs: { Worker: { replicas: 1, template: large } } };
  for (const name of ["a", "b", "c", "d", "e"]) await call(method.createJob, { job: { metadata: { name }, spec } });
  const names: string[] = [];
  let pageToken = "";
  do {
    const page = await call(method.listJobs, { view: JobView.FULL, orderBy: "name", pageToken });
    assert.equal(page.error, null);
    names.push(...page.ok.jobs.map((job) => job.metadata?.name ?? ""));
    pageToken = page.ok.nextPageToken;
  } while (pageToken !== "");
  assert.deepEqual(names, ["a", "b", "c", "d", "e"]);
});

test("cancelling wakes the worker, may be repeated, and is refused for a job that has ended", async (t) => {
  const { call, store, woken } = await startFixture(t);
  const created = await call(method.createJob, { job: pytorchJob() });
  const uid = created.ok!.job!.metadata!.uid;
  const cancelled = await call(method.cancelJob, { name: "mnist", reason: "enough" });
  assert.equal(cancelled.ok?.job?.metadata?.resourceVersion, "2");
  assert.deepEqual(woken.jobs, [uid]);
  assert.equal((await call(method.cancelJob, { name: "mnist" })).ok?.job?.metadata?.resourceVersion, "2");
  const { job } = store.jobs.get("default/mnist")!;
  store.put({ ...job, status: { ...job.status, phase: "SUCCEEDED" } });
  const late = await call(method.cancelJob, { name: "mnist" });
  assert.deepEqual([late.error?.code, late.error?.precondition], ["FAILED_PRECONDITION", "JOB_TERMINAL"]);
  const deleted = await call(method.deleteJob, { name: "mnist" });
  assert.notEqual(deleted.ok?.job?.metadata?.deleteTime, undefined);
  const missing = await call(method.cancelJob, { name: "other" });
  assert.deepEqual([missing.error?.code, missing.error?.resource], ["NOT_FOUND", "default/other"]);
});

test("what a quota keeps for nominees is reserved where only that is in the way", () => {
  const of = { queue: "q", flavor: "gpu/h100", reason: "QuotaExhausted", need: 3, limit: 16, reserved: 1, booked: 8 };
  const reservedAt = (used: number) => toProtoQuotaRefusal({ ...of, used, heldBy: [] }).reserved;
  assert.deepEqual([reservedAt(12), reservedAt(14)], [9n, 1n]);
});

test("explain says in one sentence why a job waits, and lists the refusals", async (t) => {
  const { call, store } = await startFixture(t);
  const created = await call(method.createJob, { job: pytorchJob() });
  const uid = created.ok!.job!.metadata!.uid;
  const unseen = await call(method.explainJob, { name: "mnist" });
  assert.equal(
    unseen.ok?.summary,
    "default/mnist waits in queue default, position 1: the planner has not evaluated it yet",
  );
  assert.equal(unseen.ok?.evaluatedAt, undefined);
  const message = "queue default has 2 of gpu/h100 left and the gang needs 3";
  const quota = {
    queue: "default",
    flavor: "gpu/h100",
    scope: { kind: "project" as const, pool: "gpu/h100", project: "vision" },
    reason: "QuotaExhausted",
    need: 3,
    used: 6,
    limit: 8,
    reserved: 1,
    heldBy: ["a/b"],
  };
  const refused = { cluster: "west", reason: "NoCapacity", message: "full", flavor: null, need: 3, have: 1 };
  const amounts = { need: 2 ** 41 * 1000, available: 2 ** 30 * 1000, allocatable: 2 ** 40 * 1000 };
  const memory = { kind: "resource" as const, resource: "memory", ...amounts };
  const label = { kind: "label" as const, key: "gpu", value: "h100", flavor: "gpu/h100" };
  const affinity = { kind: "affinity" as const, key: "zone", operator: "In", values: ["a", "b"] };
  const taint = { kind: "taint" as const, key: "spot", value: "yes", effect: "NoSchedule" };
  const blocked = { role: "Worker", placed: 1, never: true, node: "gpu-3", nodes: 2 };
  const cluster = {
    ...refused,
    blocked: { ...blocked, obstacles: [memory, label, affinity, taint, { kind: "unschedulable" as const }] },
  };
  store.refusals.set(uid, {
    atMs: 5000,
    refusal: {
      jobUid: uid,
      generation: 1,
      reason: "QuotaExhausted",
      message,
      clusters: [cluster],
      quotas: [quota],
      retryAtMs: 9000,
    },
  });
  const { ok } = await call(method.explainJob, { name: "mnist" });
  assert.equal(ok?.summary, `default/mnist waits in queue default, position 1: ${message}`);
  assert.deepEqual([ok?.reason, ok?.position, ok?.phase], ["QuotaExhausted", 1, JobPhase.WAITING]);
  const [shown] = ok?.quotas ?? [];
  assert.deepEqual([shown?.limit, shown?.reserved, shown?.heldBy], [8n, 1n, ["a/b"]]);
  assert.deepEqual([shown?.level, shown?.name, shown?.queue], [QuotaLevel.PROJECT, "vision", "default"]);
  assert.deepEqual([ok?.clusters[0]?.cluster, ok?.clusters[0]?.have], ["west", 1]);
  const pod = ok?.clusters[0]?.blockedPod;
  assert.deepEqual([pod?.role, pod?.placed, pod?.never, pod?.node, pod?.nodes], ["Worker", 1, true, "gpu-3", 2]);
  assert.deepEqual(
    pod?.obstacles.map(({ kind, name, need, available, allocatable, flavor }) => {
      return [PodObstacle_KindSchema.value[kind]?.localName, name, need, available, allocatable, flavor].filter(
        (text) => text !== "",
      );
    }),
    [
      ["RESOURCE", "memory", "2Ti", "1Gi", "1Ti"],
      ["LABEL", "gpu=h100", "gpu/h100"],
      ["AFFINITY", "zone in (a, b)"],
      ["TAINT", "spot=yes:NoSchedule"],
      ["UNSCHEDULABLE"],
    ],
  );
  assert.deepEqual([ok?.evaluatedAt?.seconds, ok?.retryAt?.seconds], [5n, 9n]);
});

test("explain says where a job runs, why it failed, and which admissions are still cleaned up", async (t) => {
  const { call, store } = await startFixture(t);
  await call(method.createJob, { job: pytorchJob() });
  const { job } = store.jobs.get("default/mnist")!;
  const admission = {
    number: 2,
    cluster: "west",
    admitTimeMs: 4000,
    members: { Master: 1, Worker: 2 },
    flavors: { "nvidia.com/gpu": "gpu/h100" },
    flavorLabels: {},
    tokensReleasedMs: null,
    goneMs: null,
    belowMinSinceMs: null,
  };
  const replicaStatuses = {
    Master: { active: 1, succeeded: 0, failed: 0 },
    Worker: { active: 1, succeeded: 0, failed: 0 },
  };
  const running = { ...job.status, phase: "RUNNING" as const, replicaStatuses, waiting: null };
  store.put({ ...job, status: running, admissions: [{ ...admission, state: "live" }] });
  const runs = await call(method.explainJob, { name: "mnist" });
  assert.equal(runs.ok?.summary, "default/mnist runs on cluster west: 2 of 3 pods active");
  assert.deepEqual([runs.ok?.admission?.number, runs.ok?.admission?.members["Worker"]], [2, 2]);
  const oneSucceeded = { ...replicaStatuses, Worker: { active: 1, succeeded: 1, failed: 0 } };
  store.put({
    ...job,
    status: { ...running, replicaStatuses: oneSucceeded },
    admissions: [{ ...admission, state: "live", returned: { Worker: [1] } }],
  });
  const gaveBack = await call(method.explainJob, { name: "mnist" });
  assert.equal(
    gaveBack.ok?.summary,
    "default/mnist runs on cluster west: 2 of 3 pods active, 1 succeeded, 1 has ended and gave back its tokens, " +
      "so the job holds none now",
  );
  assert.deepEqual(gaveBack.ok?.admission?.returned, { Worker: 1 });
  const shown = await call(method.getJob, { name: "mnist" });
  const worker = shown.ok?.job?.status?.replicaStatuses["Worker"];
  const matchLabels = {
    "training.kubeflow.org/job-name": "mnist",
    "training.kubeflow.org/operator-name": "pytorchjob-controller",
    "training.kubeflow.org/replica-type": "worker",
  };
  assert.deepEqual({ ...worker?.labelSelector?.matchLabels }, matchLabels);
  const parts = Object.entries(matchLabels).map(([label, value]) => `${label}=${value}`);
  assert.equal(worker?.selector, parts.join(","), "as a caller gives it to kubectl");
  const { acknowledgeTime, lastReconcileTime } = shown.ok?.job?.status ?? {};
  assert.equal(timestampMs(acknowledgeTime!), job.createTimeMs);
  assert.equal(lastReconcileTime, undefined, "no worker has recorded a step");
  const failure = {
    code: "OOMKilled",
    kind: "USER" as const,
    message: "Worker/1 ran out of memory",
    container: "pytorch",
    exitCode: 137,
  };
  const ended = {
    ...job,
    status: { ...running, phase: "FAILED" as const, failure },
    admissions: [{ ...admission, state: "ended" as const }],
  };
  store.put(ended);
  assert.equal(
    (await call(method.explainJob, { name: "mnist" })).ok?.summary,
    "default/mnist failed: OOMKilled (the program's failure): Worker/1 ran out of memory; " +
      "its pods on west run until they end by themselves (clean-pod policy None) and hold its tokens until then; " +
      "deleting the job ends them",
  );
  const runPolicy = { ...job.spec.runPolicy, cleanPodPolicy: "Running" as const };
  store.put({ ...ended, spec: { ...job.spec, runPolicy } });
  const failed = await call(method.explainJob, { name: "mnist" });
  assert.equal(
    failed.ok?.summary,
    "default/mnist failed: OOMKilled (the program's failure): Worker/1 ran out of memory; " +
      "its pods on west are still being removed",
  );
  assert.deepEqual(
    [failed.ok?.reason, failed.ok?.failure?.exitCode, failed.ok?.draining.length],
    ["OOMKilled", 137, 1],
  );
  assert.equal((await call(method.getJob, { name: "mnist" })).ok?.job?.status?.draining, true);
});

test("events of a job come in pages, oldest first", async (t) => {
  const { call, store } = await startFixture(t);
  const created = await call(method.createJob, { job: pytorchJob() });
  const jobUid = created.ok!.job!.metadata!.uid;
  for (let version = 1; version <= 3; version++) {
    store.events.push({ type: "Normal", reason: `R${version}`, message: "m", atMs: version * 1000, version, jobUid });
  }
  const first = await call(method.listJobEvents, { name: "mnist", pageSize: 2 });
  assert.deepEqual(
    first.ok?.events.map((event) => event.reason),
    ["R1", "R2"],
  );
  const second = await call(method.listJobEvents, { name: "mnist", pageSize: 2, pageToken: first.ok!.nextPageToken });
  assert.deepEqual(
    second.ok?.events.map((event) => [event.reason, event.resourceVersion]),
    [["R3", "3"]],
  );
  assert.equal((await call(method.listJobEvents, { name: "none" })).error?.code, "NOT_FOUND");
});

test("ListKinds returns roles, defaults and an example that can be submitted", async (t) => {
  const { call } = await startFixture(t);
  const { ok } = await call(method.listKinds, {});
  assert.deepEqual(
    ok?.kinds.map((kind) => kind.name),
    [
      ...["PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob", "Caffe2Job"],
      ...["Job", "Job.v1.batch", "JobSet", "TrainJob"],
    ],
  );
  const [pytorch, plain] = [ok!.kinds[0], ok!.kinds.find(({ name }) => name === "Job")];
  assert.deepEqual(
    pytorch?.roles.map(({ name, maxReplicas }) => [name, maxReplicas]),
    [
      ["Master", 1],
      ["Worker", undefined],
    ],
  );
  assert.deepEqual(
    [pytorch?.port, pytorch?.defaultContainer, pytorch?.defaultBackoffLimit],
    [23456, "pytorch", undefined],
  );
  assert.deepEqual([plain?.defaultBackoffLimit, plain?.defaultRestartScope], [6, RestartScope.GANG]);
  assert.equal(pytorch?.example?.["kind"], "PyTorchJob");
  const mpi = ok!.kinds.find(({ name }) => name === "MPIJob");
  assert.deepEqual(
    mpi?.roles.map(({ name, minReplicas, maxReplicas }) => [name, minReplicas, maxReplicas]),
    [
      ["Launcher", 1, 1],
      ["Worker", 0, undefined],
    ],
  );
});

test("a job shows links to the logs of its pods once it is admitted, and whether it is interruptible", async (t) => {
  const logTemplates = [{ name: "archive", uri: "https://logs/{{ .cluster }}/{{ .podName }}?c={{ .containerName }}" }];
  const { call, store } = await startFixture(t, { logTemplates: () => logTemplates });
  await call(method.createJob, { job: pytorchJob("mnist", { runPolicy: { interruptible: true } as never }) });
  const waiting = await call(method.getJob, { name: "mnist" });
  assert.equal(waiting.ok?.job?.spec?.runPolicy?.interruptible, true);
  assert.deepEqual(waiting.ok?.job?.status?.info?.logs, []);
  assert.equal(waiting.ok?.job?.status?.info?.phase, TaskPhase.WAITING_FOR_RESOURCES);

  const { job } = store.jobs.get("default/mnist")!;
  const released = { tokensReleasedMs: null, goneMs: null, belowMinSinceMs: null };
  const admission = {
    number: 1,
    cluster: "east",
    admitTimeMs: 1,
    members: { Master: 1 },
    flavors: {},
    flavorLabels: {},
  };
  store.put({ ...job, admissions: [{ ...admission, ...released, state: "live" }] });
  const admitted = await call(method.getJob, { name: "mnist" });
  assert.deepEqual(
    admitted.ok?.job?.status?.info?.logs.map(({ name, uri, replica, container }) => [name, uri, replica, container]),
    [["archive", "https://logs/east/mnist-master-0?c=pytorch", "Master/0", "pytorch"]],
  );
  const [pod] = admitted.ok?.job?.status?.info?.externalResources ?? [];
  assert.deepEqual([pod?.externalId, pod?.replica, pod?.phase], ["mnist-master-0", "Master/0", TaskPhase.QUEUED]);
  assert.deepEqual(
    pod?.logs.map(({ uri }) => uri),
    ["https://logs/east/mnist-master-0?c=pytorch"],
  );
  const listed = await call(method.listJobs, {});
  assert.equal(listed.ok?.jobs[0]?.status?.info, undefined, "only who asks for one job is told of its pods");
});

test("GetJob shows the state of a plugin, and lists do not", async (t) => {
  const { call, store } = await startFixture(t);
  await call(method.createJob, { job: pytorchJob("mnist") });
  const { job } = store.jobs.get("default/mnist")!;
  const state = { version: 3, value: { step: "poll" } };
  const calls = { admission: 1, attempt: 2, stage: "handle", failedCalls: 2, lastFailure: "it threw" } as const;
  store.put({ ...job, status: { ...job.status, plugin: { ...calls, state, notBeforeMs: 1_000 } } });
  const shown = (await call(method.getJob, { name: "mnist" })).ok?.job?.status?.plugin;
  assert.ok(shown);
  const { stage, attempt, failedCalls, lastFailure, stateVersion, notBefore } = shown;
  assert.deepEqual([stage, attempt, failedCalls, lastFailure], [PluginStage.HANDLE, 2, 2, "it threw"]);
  assert.deepEqual([stateVersion, shown.state, notBefore?.seconds], [3, { step: "poll" }, 1n]);
  const brief = await call(method.getJob, { name: "mnist", view: JobView.BASIC });
  assert.equal(brief.ok?.job?.status?.plugin?.state, undefined);
  assert.equal((await call(method.listJobs, {})).ok?.jobs[0]?.status?.plugin, undefined);
});
