import assert from "node:assert/strict";
import { test } from "node:test";
import { admitted } from "../../../src/core/job/admission/admitted.ts";
import { BUCKETS, bucketOf } from "../../../src/core/job/bucket.ts";
import { isInterruptible } from "../../../src/core/job/interruptible.ts";
import type { Job } from "../../../src/core/job/job.ts";
import { QUEUE_LABEL } from "../../../src/core/job/labels.ts";
import { applyCancel, applyDelete, createdEvent, deletedEvent } from "../../../src/core/job/request/create-and-end.ts";
import { defaultSpec, queueOf } from "../../../src/core/job/request/defaults.ts";
import { type JobFilter, matchesFilter } from "../../../src/core/job/request/filter.ts";
import type { SentRunPolicy } from "../../../src/core/job/request/sent.ts";
import { firstMembers, keptMembers, memberCount, rolesOf } from "../../../src/core/job/roles.ts";
import type { JobStatus } from "../../../src/core/job/status.ts";
import { admit, jobOf, START_MS, template } from "../reconcile/world.ts";

const NOW_MS = START_MS + 7;
const one = { template: template("main") };
const JOB = jobOf({ kind: "Job", replicaSpecs: { Worker: one } }, { labels: { team: "a" } });
const RUNS = admit(JOB, { cluster: "c1", nowMs: START_MS, number: 1 });
const inPhase = (phase: Job["status"]["phase"]): Job => ({ ...JOB, status: { ...JOB.status, phase } });

const ANY: JobFilter = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: null, labels: {} };
const filters: Record<string, { readonly filter: Partial<JobFilter>; readonly job?: Job; readonly passes: boolean }> = {
  "no member at all": { filter: {}, passes: true },
  "the job's namespace": { filter: { namespace: "ns" }, passes: true },
  "another namespace": { filter: { namespace: "other" }, passes: false },
  "several names with the job's": { filter: { names: ["i", "j"] }, passes: true },
  "other names": { filter: { names: ["i"] }, passes: false },
  "the job's kind": { filter: { kinds: ["Job"] }, passes: true },
  "another kind": { filter: { kinds: ["TFJob"] }, passes: false },
  "the job's phase": { filter: { phases: ["WAITING"] }, passes: true },
  "another phase": { filter: { phases: ["RUNNING"] }, passes: false },
  "the job's queue": { filter: { queue: "default" }, passes: true },
  "another queue": { filter: { queue: "other" }, passes: false },
  "the cluster of an admitted job": { filter: { cluster: "c1" }, job: RUNS, passes: true },
  "another cluster": { filter: { cluster: "c2" }, job: RUNS, passes: false },
  "a cluster, but the job waits": { filter: { cluster: "c1" }, passes: false },
  "a label of the job": { filter: { labels: { team: "a" } }, passes: true },
  "a label with another value": { filter: { labels: { team: "b" } }, passes: false },
  "two labels of which the job has one": { filter: { labels: { team: "a", tier: "x" } }, passes: false },
};
for (const [name, { filter, job = JOB, passes }] of Object.entries(filters)) {
  test(`a filter with ${name}: the job ${passes ? "passes" : "does not pass"}`, () => {
    assert.equal(matchesFilter({ ...ANY, ...filter }, job), passes);
  });
}

test("a filter reads the facts that may change from an earlier state of the job", () => {
  const before = { phase: "RUNNING", cluster: "c2", labels: { team: "b" } };
  const filter = { ...ANY, phases: ["RUNNING"], cluster: "c2", labels: { team: "b" } };
  assert.equal(matchesFilter(filter, RUNS, before), true);
  assert.equal(matchesFilter(filter, RUNS), false);
  assert.equal(matchesFilter({ ...ANY, labels: { team: "a" } }, RUNS, { ...before, labels: null }), true);
});

const cancels: Record<string, { readonly job: Job; readonly kind: string }> = {
  "a job that waits": { job: JOB, kind: "cancelled" },
  "a job that runs": { job: RUNS, kind: "cancelled" },
  "a job that was cancelled before": { job: { ...JOB, cancel: { reason: "", atMs: 1 } }, kind: "already" },
  "a job that is being deleted": { job: { ...JOB, deleteTimeMs: 1 }, kind: "already" },
  "a job that has succeeded": { job: inPhase("SUCCEEDED"), kind: "terminal" },
  "a job that has failed": { job: inPhase("FAILED"), kind: "terminal" },
  "a job that has ended cancelled": { job: inPhase("CANCELLED"), kind: "terminal" },
};
for (const [name, { job, kind }] of Object.entries(cancels)) {
  test(`a cancellation of ${name}: ${kind}`, () => {
    const applied = applyCancel(job, { reason: "wrong data", nowMs: NOW_MS });
    assert.equal(applied.kind, kind);
    if (applied.kind !== "cancelled") return assert.equal(applied.job, job);
    const changed = { cancel: { reason: "wrong data", atMs: NOW_MS }, version: job.version + 1 };
    assert.deepEqual(applied.job, { ...job, ...changed });
    assert.equal(applied.event.reason, "JobCancelRequested");
    assert.match(applied.event.message, /wrong data/);
  });
}

test("a deletion is recorded once, in any phase", () => {
  const ended = inPhase("FAILED");
  const applied = applyDelete(ended, NOW_MS);
  assert.ok(applied.kind === "deleting");
  assert.deepEqual(applied.job, { ...ended, deleteTimeMs: NOW_MS, version: ended.version + 1 });
  assert.equal(applied.event.reason, "JobDeleteRequested");
  assert.deepEqual(applyDelete(applied.job, NOW_MS + 1), { kind: "already", job: applied.job });
});

test("a job's first event repeats its condition Created, and its last one says that it is deleted", () => {
  assert.deepEqual(createdEvent(JOB), { type: "Normal", reason: "JobCreated", message: "created" });
  const without = { ...JOB, status: { ...JOB.status, conditions: [] } };
  assert.deepEqual(createdEvent(without), { type: "Normal", reason: "JobCreated", message: "Job j is created." });
  assert.deepEqual(deletedEvent(JOB), { type: "Normal", reason: "JobDeleted", message: "Job j is deleted." });
});

test("an admission is shown with its cluster and each of its flavors once", () => {
  const [admission] = RUNS.admissions;
  assert.ok(admission !== undefined);
  const waiting = { reason: "QueueQuota", message: "full", sinceMs: START_MS };
  const job = { ...JOB, status: { ...JOB.status, waiting } };
  const flavors = { "nvidia.com/gpu": "gpu/h100", "nvidia.com/mig": "gpu/a100", "amd.com/gpu": "gpu/h100" };
  const { status, event } = admitted(job, { ...admission, flavors }, NOW_MS);
  assert.deepEqual([status.phase, status.waiting], ["ADMITTED", null]);
  assert.deepEqual(
    status.conditions.map(({ type, status: is, lastTransitionMs }) => [type, is, lastTransitionMs]),
    [
      ["Created", "True", START_MS],
      ["QuotaReserved", "True", NOW_MS],
      ["Admitted", "True", NOW_MS],
    ],
  );
  assert.equal(event.reason, "JobAdmitted");
  assert.match(event.message, /cluster c1 under gpu\/a100, gpu\/h100 \(admission 1\)/);
  assert.doesNotMatch(admitted(job, admission, NOW_MS).event.message, /under/);
  assert.match(admitted(job, { ...admission, cluster: null }, NOW_MS).event.message, /its service/);
});

const named = { schedulingPolicy: { queue: "own" } };
const labels = { [QUEUE_LABEL]: "label" };
const queues: Record<string, { policy?: SentRunPolicy; labels?: Record<string, string>; of?: string; queue: string }> =
  {
    "the scheduling policy's before all": { policy: named, labels, of: "namespace", queue: "own" },
    "the label's before the namespace's": { labels, of: "namespace", queue: "label" },
    "the namespace's if the job names none": { of: "namespace", queue: "namespace" },
    "the namespace's if the job's is empty": {
      policy: { schedulingPolicy: { queue: "" } },
      labels: { [QUEUE_LABEL]: "" },
      of: "namespace",
      queue: "namespace",
    },
    "the default one if none is named": { queue: "default" },
  };
for (const [name, { policy, labels: own = {}, of = null, queue }] of Object.entries(queues)) {
  test(`a job's queue is ${name}`, () => {
    const sent = { kind: "Job", replicaSpecs: {}, ...(policy === undefined ? {} : { runPolicy: policy }) };
    assert.equal(queueOf(sent, { labels: own, namespaceQueue: of }), queue);
  });
}

const KIND = {
  defaults: { restartPolicy: "Never", restartScope: "REPLICA", backoffLimit: null },
  roleName: (role: string) => role.toUpperCase(),
} as const;
const CONTEXT = { kind: KIND, labels: {}, namespaceQueue: null, priorityClass: null };

test("a spec that names nothing gets the defaults of its kind", () => {
  const sent = { kind: "Job", replicaSpecs: { a: {}, b: { replicas: 3 } } };
  const spec = defaultSpec(sent, CONTEXT);
  const replica = { restartPolicy: "Never", template: {} };
  assert.deepEqual(spec, {
    kind: "Job",
    replicaSpecs: { A: { ...replica, replicas: 1 }, B: { ...replica, replicas: 3 } },
    runPolicy: {
      cleanPodPolicy: "None",
      cleanPodPolicyAtLimit: "Running",
      ttlSecondsAfterFinished: null,
      activeDeadlineSeconds: null,
      backoffLimit: null,
      systemBackoffLimit: 20,
      startBackoffLimit: 3,
      restartScope: "REPLICA",
      suspend: false,
      schedulingPolicy: { minAvailable: 4, queue: "default", scheduleTimeoutSeconds: 600, isTimeoutDefault: true },
    },
    kindSpec: {},
    priority: 0,
    placement: { clusters: [], clusterSelector: {}, gpuModels: [] },
  });
});

test("a spec keeps everything that it names", () => {
  const runPolicy = {
    cleanPodPolicy: "All",
    cleanPodPolicyAtLimit: "None",
    ttlSecondsAfterFinished: 1,
    activeDeadlineSeconds: 2,
    backoffLimit: 0,
    systemBackoffLimit: 0,
    startBackoffLimit: 7,
    restartScope: "GANG",
    suspend: true,
    interruptible: true,
    interruptibleFailureThreshold: 0,
    cacheKey: "key",
    schedulingPolicy: {
      minAvailable: 1,
      queue: "q",
      minResources: { cpu: "1" },
      priorityClass: "high",
      scheduleTimeoutSeconds: 0,
      partial: "RESTART",
    },
  } as const;
  const placement = { clusters: ["c1"], clusterSelector: { zone: "z" }, gpuModels: ["h100"] };
  const rest = { kind: "Job", kindSpec: { a: 1 }, inputs: { b: 2 }, priority: 5, placement };
  const replica = { replicas: 0, restartPolicy: "Always", template: template("main") } as const;
  const spec = defaultSpec(
    { ...rest, replicaSpecs: { w: replica }, runPolicy },
    { ...CONTEXT, priorityClass: { name: "high", value: 9, preemptionPolicy: "LOWER_PRIORITY" as const } },
  );
  assert.deepEqual(spec, { ...rest, priorityClassName: "high", replicaSpecs: { W: replica }, runPolicy });
});

test("empty texts and a switched-off interruption count as omitted, and a class gives its priority", () => {
  const runPolicy = { interruptible: false, cacheKey: "", schedulingPolicy: { priorityClass: "" } };
  const spec = defaultSpec(
    { kind: "Job", replicaSpecs: {}, runPolicy },
    { ...CONTEXT, priorityClass: { name: "high", value: 9, preemptionPolicy: "LOWER_PRIORITY" as const } },
  );
  assert.deepEqual([spec.priority, Object.keys(spec.runPolicy).includes("interruptible")], [9, false]);
  assert.equal("cacheKey" in spec.runPolicy, false);
  assert.equal("priorityClass" in spec.runPolicy.schedulingPolicy, false);
});

const interruptions: Record<string, { readonly policy: object; readonly system: number; readonly is: boolean }> = {
  "a job that does not ask for it": { policy: {}, system: 0, is: false },
  "a job without failures of the system": { policy: { interruptible: true }, system: 0, is: true },
  "a job after one failure of the system": { policy: { interruptible: true }, system: 1, is: false },
  "a job below its own threshold": {
    policy: { interruptible: true, interruptibleFailureThreshold: 3 },
    system: 2,
    is: true,
  },
  "a job at its own threshold": {
    policy: { interruptible: true, interruptibleFailureThreshold: 3 },
    system: 3,
    is: false,
  },
};
for (const [name, { policy, system, is }] of Object.entries(interruptions)) {
  test(`${name} is ${is ? "" : "not "}interruptible`, () => {
    assert.equal(isInterruptible({ ...JOB.spec, runPolicy: { ...JOB.spec.runPolicy, ...policy } }, { system }), is);
  });
}

const ROLES = jobOf({
  kind: "Job",
  replicaSpecs: { Worker: { ...one, replicas: 4 }, Zed: one, PS: { ...one, replicas: 2 }, Chief: one, Abc: one },
}).spec;

test("roles have a fixed order, and members are taken from leaders, parameter servers and the others in turn", () => {
  assert.deepEqual(rolesOf(ROLES), ["Chief", "PS", "Worker", "Abc", "Zed"]);
  assert.deepEqual(firstMembers(ROLES, 0), { Chief: 0, PS: 0, Worker: 0, Abc: 0, Zed: 0 });
  assert.deepEqual(firstMembers(ROLES, 2), { Chief: 1, PS: 1, Worker: 0, Abc: 0, Zed: 0 });
  assert.deepEqual(firstMembers(ROLES, 8), { Chief: 1, PS: 2, Worker: 4, Abc: 1, Zed: 0 });
  assert.equal(memberCount(firstMembers(ROLES, 100)), 9);
});

test("an evaluator comes before parameter servers in lists, and after them when members are taken", () => {
  const spec = jobOf({ kind: "Job", replicaSpecs: { PS: one, Evaluator: one, Launcher: one, Master: one } }).spec;
  assert.deepEqual(rolesOf(spec), ["Master", "Launcher", "Evaluator", "PS"]);
  assert.deepEqual(firstMembers(spec, 3), { Master: 1, Launcher: 1, Evaluator: 0, PS: 1 });
});

test("a scale-down or a request to give up members leaves fewer than were admitted, a scale-up no more", () => {
  const of = (shrink?: JobStatus["shrink"]) => ({ spec: ROLES, status: { ...JOB.status, ...(shrink && { shrink }) } });
  const admitted = { number: 2, members: { Worker: 6, PS: 1, Gone: 2 } };
  assert.deepEqual(keptMembers(of(), admitted), { Worker: 4, PS: 1, Gone: 0 });
  const keeps = { Worker: 3, PS: 1 };
  assert.deepEqual(keptMembers(of({ admission: 2, keeps }), admitted), { Worker: 3, PS: 1, Gone: 0 });
  assert.deepEqual(keptMembers(of({ admission: 2, keeps: { Worker: 5 } }), admitted), { Worker: 4, PS: 1, Gone: 0 });
  assert.deepEqual(keptMembers(of({ admission: 1, keeps }), admitted), { Worker: 4, PS: 1, Gone: 0 });
});

test("a job's bucket never changes: workers of every version agree on it", () => {
  const uids = ["", "a", "foobar", "01890a5d-ac96-774b-bcce-b302099a8057"];
  assert.deepEqual(
    uids.slice(0, 3).map(bucketOf),
    [0x811c9dc5, 0xe40c292c, 0xbf9cf968].map((hash) => hash % BUCKETS),
  );
  assert.ok(uids.every((uid) => bucketOf(uid) >= 0 && bucketOf(uid) < BUCKETS));
});
