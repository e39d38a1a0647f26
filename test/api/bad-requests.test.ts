import assert from "node:assert/strict";
import { test } from "node:test";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { startFixture } from "./fixture.ts";
import { type CreateInit, type JobInit, pytorchJob, template } from "./jobs.ts";

const { method } = JobService;

type Case = { readonly request: CreateInit; readonly fields: readonly string[]; readonly says?: RegExp };
const worker = (replicas: number, pods = template()) => ({ replicas, template: pods });
const WORKER = "job.spec.replica_specs[Worker]";
const SCHEDULING = "job.spec.run_policy.scheduling_policy";

function withSpec(spec: Partial<NonNullable<JobInit["spec"]>>): CreateInit {
  return { job: pytorchJob("mnist", spec) };
}

function withMetadata(metadata: NonNullable<JobInit["metadata"]>): CreateInit {
  return { job: { ...pytorchJob(), metadata } };
}

function withPod(pod: object, strict = false): CreateInit {
  return { ...withSpec({ replicaSpecs: { Worker: worker(1, pod as ReturnType<typeof template>) } }), strict };
}

const container = { name: "pytorch", image: "x" };

const cases: Record<string, Case> = {
  "an empty request": { request: {}, fields: ["job"] },
  "a job without metadata and spec": {
    request: { job: {} },
    fields: ["job.metadata", "job.spec"],
  },
  "an unknown kind": {
    request: withSpec({ kind: "NoJob" }),
    fields: ["job.spec.kind"],
    says: /unknown kind NoJob/,
  },
  "a kind that is not served": {
    request: withSpec({ kind: "MXJob" }),
    fields: ["job.spec.kind"],
    says: /MXJob is not served: /,
  },
  "negative replicas": {
    request: withSpec({ replicaSpecs: { Master: worker(1), Worker: worker(-1) } }),
    fields: [`${WORKER}.replicas`],
  },
  "too many replicas": {
    request: withSpec({ replicaSpecs: { Worker: worker(10_001) } }),
    fields: [`${WORKER}.replicas`],
  },
  "two masters": {
    request: withSpec({ replicaSpecs: { Master: worker(2) } }),
    fields: ["job.spec.replica_specs[Master].replicas"],
    says: /at most 1/,
  },
  "no replica at all": {
    request: withSpec({ replicaSpecs: { Worker: worker(0) } }),
    fields: ["job.spec.replica_specs"],
  },
  "a role that the kind does not have": {
    request: withSpec({ replicaSpecs: { PS: worker(1) } }),
    fields: ["job.spec.replica_specs[PS]"],
  },
  "a role twice in different case": {
    request: withSpec({ replicaSpecs: { Worker: worker(1), worker: worker(1) } }),
    fields: ["job.spec.replica_specs[worker]"],
  },
  "a role with a name that every object inherits": {
    request: withSpec({ kind: "Job", replicaSpecs: { Worker: worker(1), valueOf: worker(1) } }),
    fields: ["job.spec.replica_specs[valueOf]"],
  },
  "a kind spec field with a name that every object inherits": {
    request: withSpec({ kindSpec: { valueOf: 1 } }),
    fields: ["job.spec.kind_spec.valueOf"],
  },
  "inputs that a command cannot use": {
    request: withSpec({ inputs: { fine: { a: null }, none: null, "a b": 1, toString: 1 } }),
    fields: ["job.spec.inputs.none", "job.spec.inputs.a b"],
    says: /null is not allowed.*must have a name/s,
  },
  "wrong fields within a kind spec, each by its path": {
    request: withSpec({ kindSpec: { elasticPolicy: { minReplicas: 0, rdzvConf: [{ value: "1" }], on: true } } }),
    fields: [
      "job.spec.kind_spec.elasticPolicy.minReplicas",
      "job.spec.kind_spec.elasticPolicy.rdzvConf[0].key",
      "job.spec.kind_spec.elasticPolicy.on",
    ],
    says: /at least 1.*is required.*is not a field of elasticPolicy/s,
  },
  "min_available above the number of replicas": {
    request: withSpec({ runPolicy: { schedulingPolicy: { minAvailable: 4 } } }),
    fields: [`${SCHEDULING}.min_available`],
    says: /3/,
  },
  "min_available 0": {
    request: withSpec({ runPolicy: { schedulingPolicy: { minAvailable: 0 } } }),
    fields: [`${SCHEDULING}.min_available`],
  },
  "a queue that does not exist": {
    request: withSpec({ runPolicy: { schedulingPolicy: { queue: "nope" } } }),
    fields: [`${SCHEDULING}.queue`],
    says: /queue nope does not exist/,
  },
  "a queue label that names an unknown queue": {
    request: withMetadata({ name: "mnist", labels: { "kueue.x-k8s.io/queue-name": "nope" } }),
    fields: ["job.metadata.labels[kueue.x-k8s.io/queue-name]"],
  },
  "enum numbers that the proto does not define": {
    request: withSpec({
      replicaSpecs: { Worker: { replicas: 1, template: template(), restartPolicy: 99 as never } },
      runPolicy: { cleanPodPolicy: 98 as never, restartScope: 97 as never },
    }),
    fields: ["job.spec.run_policy.clean_pod_policy", "job.spec.run_policy.restart_scope", `${WORKER}.restart_policy`],
  },
  "a name that is not a DNS label": { request: withMetadata({ name: "My_Job" }), fields: ["job.metadata.name"] },
  "a name that makes the names of pods too long": {
    request: withMetadata({ name: "a".repeat(60) }),
    fields: ["job.metadata.name"],
    says: /69 characters/,
  },
  "both name and generate_name": {
    request: withMetadata({ name: "mnist", generateName: "run-" }),
    fields: ["job.metadata.generate_name"],
  },
  "no name": { request: withMetadata({ namespace: "default" }), fields: ["job.metadata.name"] },
  "a namespace that is not a DNS label": {
    request: withMetadata({ name: "mnist", namespace: "a/b" }),
    fields: ["job.metadata.namespace"],
  },
  "reserved labels": {
    request: withMetadata({ name: "mnist", labels: { "gangway.dev/admission": "1" } }),
    fields: ["job.metadata.labels[gangway.dev/admission]"],
  },
  "annotations over 256 KiB": {
    request: withMetadata({ name: "mnist", annotations: { a: "x".repeat(200_000), b: "y".repeat(80_000) } }),
    fields: ["job.metadata.annotations"],
  },
  "a NUL character, which the database cannot store": {
    request: withMetadata({ name: "mnist", annotations: { note: "a\0b" } }),
    fields: ["job.metadata.annotations[note]"],
  },
  "an error and a warning about one field": {
    request: withPod({ spec: { containers: [{ ...container, extra: { "a\0b": 1 } }] } }),
    fields: [`${WORKER}.template.spec.containers[0].extra`],
    says: /^must not have a key that contains NUL characters$/,
  },
  "a request id that is too long": {
    request: { job: pytorchJob(), requestId: "x".repeat(129) },
    fields: ["request_id"],
  },
  "a template over 1 MiB": {
    request: withPod({ spec: { containers: [{ ...container, args: ["x".repeat(1024 * 1024)] }] } }),
    fields: [`${WORKER}.template`],
    says: /1048576 bytes/,
  },
  "a replica spec without a template": {
    request: withSpec({ replicaSpecs: { Worker: { replicas: 1 } } }),
    fields: [`${WORKER}.template`, `${WORKER}.template.spec.containers`],
  },
  "a template without the kind's container": {
    request: withPod({ spec: { containers: [{ name: "main", image: "x" }] } }),
    fields: [`${WORKER}.template.spec.containers`],
  },
  "a template with reserved labels": {
    request: withPod({ metadata: { labels: { "gangway.dev/job-uid": "x" } }, spec: { containers: [container] } }),
    fields: [`${WORKER}.template.metadata.labels.gangway.dev/job-uid`],
  },
  "a template with a node name": {
    request: withPod({ spec: { nodeName: "node-1", containers: [container] } }),
    fields: [`${WORKER}.template.spec.nodeName`],
  },
  "an invalid quantity": {
    request: withPod({ spec: { containers: [{ ...container, resources: { limits: { cpu: "lots" } } }] } }),
    fields: [`${WORKER}.template.spec.containers[0].resources.limits.cpu`],
  },
  "a number that is not finite": {
    request: withPod({ spec: { containers: [container], terminationGracePeriodSeconds: Number.NaN } }),
    fields: [`${WORKER}.template.spec.terminationGracePeriodSeconds`],
  },
  "a typo in a template, with strict": {
    request: withPod({ spec: { containers: [{ ...container, resorces: {} }] } }, true),
    fields: [`${WORKER}.template.spec.containers[0].resorces`],
    says: /resources/,
  },
  "invalid names of clusters and GPU models": {
    request: withSpec({ placement: { clusters: ["ok", "No!"], gpuModels: ["H100 SXM"] } }),
    fields: ["job.spec.placement.clusters[1]", "job.spec.placement.gpu_models[0]"],
  },
  "limits outside their bounds": {
    request: withSpec({
      runPolicy: {
        activeDeadlineSeconds: 3_153_600_001n,
        systemBackoffLimit: -1,
        schedulingPolicy: { scheduleTimeoutSeconds: -1, minAvailable: -3, queue: "q".repeat(64) },
      },
    }),
    fields: [
      "job.spec.run_policy.active_deadline_seconds",
      `${SCHEDULING}.min_available`,
      `${SCHEDULING}.queue`,
      `${SCHEDULING}.schedule_timeout_seconds`,
      "job.spec.run_policy.system_backoff_limit",
    ],
  },
  "limits below zero": {
    request: withSpec({ runPolicy: { backoffLimit: -1, activeDeadlineSeconds: 0n, ttlSecondsAfterFinished: -5 } }),
    fields: [
      "job.spec.run_policy.active_deadline_seconds",
      "job.spec.run_policy.backoff_limit",
      "job.spec.run_policy.ttl_seconds_after_finished",
    ],
  },
  "several wrong fields at once, by rules of the proto and of intake": {
    request: {
      requestId: "x".repeat(129),
      job: {
        metadata: { name: "UPPER", labels: { "gangway.dev/a": "b" } },
        spec: {
          kind: "TFJob",
          replicaSpecs: { Boss: worker(1, template("tensorflow")), Worker: worker(-2, template("main")) },
          runPolicy: { cleanPodPolicy: 77 as never, schedulingPolicy: { queue: "nope", minAvailable: 9 } },
        },
      },
    },
    fields: [
      "job.metadata.labels[gangway.dev/a]",
      "job.metadata.name",
      "job.spec.replica_specs[Boss]",
      "job.spec.run_policy.clean_pod_policy",
      `${SCHEDULING}.min_available`,
      `${SCHEDULING}.queue`,
      `${WORKER}.replicas`,
      `${WORKER}.template.spec.containers`,
      "request_id",
    ],
  },
};

test("a bad request is refused with every wrong field, and changes nothing", async (t) => {
  const { call, store, internal, woken } = await startFixture(t);
  const check = async (c: Case) => {
    const { error } = await call(method.createJob, c.request);
    assert.equal(error?.code, "INVALID_ARGUMENT");
    assert.deepEqual(error.fields.map(({ field }) => field).sort(), [...c.fields].sort());
    assert.ok(
      c.fields.some((field) => error.message.includes(field)),
      error.message,
    );
    if (c.says) assert.match(error.fields.map(({ description }) => description).join("; "), c.says);
    assert.equal(error.reason, "INVALID_FIELDS");
    assert.deepEqual([store.jobs.size, store.requestIds.size, woken.planner, internal], [0, 0, 0, []]);
  };
  for (const [name, c] of Object.entries(cases)) await t.test(name, () => check(c));
});

test("a typo in a template is a warning that names the intended field", async (t) => {
  const { call, store } = await startFixture(t);
  const { ok } = await call(
    method.createJob,
    withPod({ spec: { nodeSelctor: {}, containers: [{ ...container, resorces: {} }] } }),
  );
  const warnings = ok?.warnings.map(({ field, message }) => [field, message]) ?? [];
  assert.deepEqual(warnings.map(([field]) => field).sort(), [
    `${WORKER}.template.spec.containers[0].resorces`,
    `${WORKER}.template.spec.nodeSelctor`,
  ]);
  assert.match(warnings.join("; "), /nodeSelector/);
  assert.equal(store.jobs.size, 1);
});

test("bytes that are not protobuf are refused as INVALID_ARGUMENT", async (t) => {
  const { sendBytes, store, internal } = await startFixture(t);
  const { error } = await sendBytes(method.createJob, new Uint8Array([0x0a, 0xff, 0x01]));
  assert.deepEqual([error?.code, error?.reason], ["INVALID_ARGUMENT", "UNDECODABLE_REQUEST"]);
  assert.match(error!.message, /^the request is not a valid gangway\.v1\.CreateJobRequest message: /);
  assert.deepEqual([store.jobs.size, internal], [0, []]);
});

test("hundreds of violations fit into 4 KiB of details, which say how many more there are", async (t) => {
  const { call } = await startFixture(t);
  const containers = Array.from({ length: 128 }, (_, at) => ({ name: `c${at}`, image: "", ["é".repeat(300)]: at }));
  const { error } = await call(method.createJob, withPod({ spec: { containers } }, true));
  assert.equal(error?.code, "INVALID_ARGUMENT");
  assert.ok(error.detailBytes > 1024 && error.detailBytes <= 4096, `${error.detailBytes} bytes`);
  assert.match(error.fields.at(-1)?.description ?? "", /^… and \d+ more$/);
  assert.ok(encodeURI(error.message).length <= 1536);
  assert.equal(error.reason, "INVALID_FIELDS");
});

test("invalid page sizes, page tokens, cursors and views are refused by field", async (t) => {
  const { call, stream } = await startFixture(t);
  const large = await call(method.listJobs, { pageSize: 1001, orderBy: "size", view: 9 as never });
  assert.deepEqual(large.error?.fields.map(({ field }) => field).sort(), ["order_by", "page_size", "view"]);
  const token = await call(method.listJobs, { pageToken: "x" });
  assert.deepEqual([token.error?.code, token.error?.fields[0]?.field], ["INVALID_ARGUMENT", "page_token"]);
  const both = await call(method.getJob, { name: "a", uid: "01890a5d-ac96-774b-bcce-b302099a8057" });
  assert.equal(both.error?.code, "INVALID_ARGUMENT");
  const neither = await call(method.getJob, {});
  assert.match(neither.error?.message ?? "", /set either name or uid/);
  const nul = await call(method.listJobs, { filter: { names: ["a", "b\0"] } });
  assert.equal(nul.error?.fields[0]?.field, "filter.names[1]");
  const watch = stream(method.watchJobs, { cursor: "x" });
  await assert.rejects(watch.toArray(), /3 INVALID_ARGUMENT: cursor: must be a cursor/);
});
