/** Jobs that were recorded before a limit was made, and are above it: they are refused anew, and served as before. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Job } from "../../src/core/job/job.ts";
import { gangOf } from "../../src/core/plan/model/plan-gang.ts";
import { type CreateJobRequestSchema, JobService, JobView } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { names, pytorch, Scene } from "../core/reconcile/scene.ts";
import { admit } from "../core/reconcile/world.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { startFixture } from "./fixture.ts";
import { type JobInit, pytorchJob, template } from "./jobs.ts";

const { method } = JobService;
const many = <T>(count: number, make: (at: number) => T) => Array.from({ length: count }, (_, at) => make(at));
const pairs = (count: number) => Object.fromEntries(many(count, (at) => [`k${at}`, `v${at}`]));

type Spec = NonNullable<JobInit["spec"]>;
const withSpec = (spec: object) => ({ metadata: { name: "old" }, spec: { ...pytorchJob().spec, ...spec } as Spec });
const withMetadata = (metadata: object) => ({ ...pytorchJob(), metadata: { name: "old", ...metadata } });
const withContainer = (container: object) => {
  const [own] = (template()["spec"] as { containers: object[] }).containers;
  const large = { spec: { containers: [{ ...own, ...container }] } };
  return withSpec({
    replicaSpecs: { Master: { replicas: 1, template: large }, Worker: { replicas: 2, template: large } },
  });
};

/** Jobs above one limit each. */
const above: Readonly<Record<string, JobInit>> = {
  labels: withMetadata({ labels: pairs(300) }),
  annotations: withMetadata({ annotations: pairs(2_000) }),
  "a long annotation": withMetadata({ annotations: { text: "x".repeat(400_000) } }),
  inputs: withSpec({ inputs: pairs(20_100) }),
  minResources: withSpec({
    runPolicy: { schedulingPolicy: { minResources: Object.fromEntries(many(300, (at) => [`a/k${at}`, "1"])) } },
  }),
  "labels of a placement": withSpec({ placement: { clusters: [], gpuModels: [], clusterSelector: pairs(3_000) } }),
  "a long argument": withContainer({ args: ["x".repeat(1_200_000)] }),
  "node labels": withContainer({ resources: { limits: Object.fromEntries(many(1_100, (at) => [`a/k${at}`, "1"])) } }),
};

/** The record of a job as an older version has kept it: what was sent, beside what the service adds. */
function recordOf(good: Job, { metadata, spec }: JobInit): Job {
  const { labels = {}, annotations = {} } = (metadata ?? {}) as {
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  const sent = spec as {
    inputs?: object;
    placement?: object;
    runPolicy?: { schedulingPolicy?: object };
    replicaSpecs: Record<string, { template: object }>;
  };
  const { schedulingPolicy } = good.spec.runPolicy;
  const roles = Object.entries(good.spec.replicaSpecs).map(([role, kept]) => {
    return [role, { ...kept, template: sent.replicaSpecs[role]?.template ?? kept.template }];
  });
  return {
    ...good,
    labels: { ...good.labels, ...labels },
    annotations: { ...good.annotations, ...annotations },
    spec: {
      ...good.spec,
      ...(sent.inputs && { inputs: sent.inputs }),
      ...(sent.placement && { placement: sent.placement }),
      runPolicy: {
        ...good.spec.runPolicy,
        schedulingPolicy: { ...schedulingPolicy, ...sent.runPolicy?.schedulingPolicy },
      },
      replicaSpecs: Object.fromEntries(roles),
    },
  } as Job;
}

for (const [name, job] of Object.entries(above)) {
  test(`a recorded job above the limit of ${name} is refused anew, and served as before`, async (t) => {
    const { call, store, internal } = await startFixture(t);
    const request = { job } as MessageInitShape<typeof CreateJobRequestSchema>;
    const refused = await call(method.createJob, request);
    assert.equal(refused.error?.code, "INVALID_ARGUMENT", "the limit is one");

    await call(method.createJob, { job: pytorchJob("old") });
    const { job: good } = store.jobs.get("default/old") ?? assert.fail("the job was created");
    const old = recordOf(good, job);
    assert.notDeepEqual(old, good);
    store.put(old);
    for (const view of [JobView.BASIC, JobView.FULL]) {
      const one = await call(method.getJob, { name: "old", view });
      assert.equal(one.ok?.job?.metadata?.uid, old.uid);
      const all = await call(method.listJobs, { view });
      assert.equal(all.ok?.jobs[0]?.metadata?.uid, old.uid);
    }
    const full = (await call(method.getJob, { name: "old", view: JobView.FULL })).ok?.job;
    assert.equal(Object.keys(full?.metadata?.labels ?? {}).length, Object.keys(old.labels).length);
    assert.equal((await call(method.explainJob, { name: "old" })).error, null);
    assert.equal((await call(method.listJobEvents, { name: "old" })).error, null);
    const change = {
      job: { metadata: { name: "old" }, spec: { priority: 7 } },
      updateMask: { paths: ["spec.priority"] },
    };
    assert.equal((await call(method.updateJob, change)).ok?.job?.spec?.priority, 7);
    assert.equal((await call(method.cancelJob, { name: "old" })).error, null);
    assert.deepEqual(internal, []);

    assert.equal(gangOf(old, OWN_KINDS, { generation: 1, lastAdmission: 0 }).uid, old.uid, "the planner reads it");
    const scene = new Scene(pytorch());
    scene.job = admit(old, { cluster: "c1", nowMs: scene.nowMs, number: 1 });
    scene.rest();
    assert.deepEqual(scene.podNames, ["old-master-0", "old-worker-0", "old-worker-1"]);
    scene.change({ suspend: true });
    scene.rest();
    assert.deepEqual([scene.podNames, names(scene.step(), "createPod")], [[], []]);
  });
}
