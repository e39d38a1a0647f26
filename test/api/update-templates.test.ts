/** Pod templates of a suspended job may change where its pods run, and their labels and annotations. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { JobService, type UpdateJobRequestSchema } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { objectAt } from "../../src/runtime/json.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

const { method } = JobService;

function update(template: object, { type = "Worker", suspend }: { type?: string; suspend?: boolean } = {}) {
  const runPolicy = suspend === undefined ? {} : { runPolicy: { suspend } };
  const job = { metadata: { name: "mnist" }, spec: { replicaSpecs: { [type]: { template } }, ...runPolicy } };
  const paths = [`spec.replica_specs.${type}.template`, ...(suspend === undefined ? [] : ["spec.run_policy.suspend"])];
  return { job, updateMask: { paths } } as MessageInitShape<typeof UpdateJobRequestSchema>;
}

const NODES = {
  metadata: { labels: { pool: "a" } },
  spec: { nodeSelector: { gpu: "h100" }, tolerations: [{ key: "gpu", operator: "Exists", effect: "NoSchedule" }] },
};

test("the members of the patch take the place of the template's, and the others stay", async (t) => {
  const { call, store } = await startFixture(t);
  await call(method.createJob, { job: pytorchJob("mnist", { runPolicy: { suspend: true } }) });
  const changed = await call(method.updateJob, update(NODES, { type: "worker", suspend: false }));
  assert.equal(changed.error, null, JSON.stringify(changed.error));
  const after = store.jobs.get("default/mnist")!;
  for (const spec of [after.job.spec, after.sent.spec]) {
    const worker = spec.replicaSpecs["Worker"]?.template;
    assert.deepEqual(objectAt(worker, "metadata"), NODES.metadata);
    assert.deepEqual(objectAt(worker, "spec")["nodeSelector"], NODES.spec.nodeSelector);
    assert.deepEqual(objectAt(worker, "spec")["tolerations"], NODES.spec.tolerations);
    assert.ok(objectAt(worker, "spec")["containers"] !== undefined, "the containers stay");
    assert.deepEqual(objectAt(spec.replicaSpecs["Master"]?.template, "metadata"), {}, "other types stay");
  }
  assert.equal(after.job.spec.runPolicy.suspend, false);
  await call(method.updateJob, {
    job: { metadata: { name: "mnist" }, spec: { runPolicy: { suspend: true } } },
    updateMask: { paths: ["spec.run_policy.suspend"] },
  });
  await call(method.updateJob, update({ spec: { nodeSelector: null } }));
  const removed = objectAt(store.jobs.get("default/mnist")!.job.spec.replicaSpecs["Worker"]?.template, "spec");
  assert.deepEqual([removed["nodeSelector"], removed["tolerations"]], [undefined, NODES.spec.tolerations]);
});

test("a template stays while its job may run, and what else it has never changes", async (t) => {
  const { call, store } = await startFixture(t);
  await call(method.createJob, { job: pytorchJob() });
  const before = JSON.stringify(store.jobs.get("default/mnist"));
  const fixed = await call(method.updateJob, update(NODES));
  assert.deepEqual([fixed.error?.code, fixed.error?.reason], ["FAILED_PRECONDITION", "JOB_TEMPLATES_FIXED"]);
  const refusals: readonly [object, string][] = [
    [{ spec: { containers: [] } }, "job.spec.replica_specs[Worker].template.spec.containers"],
    [{ metadata: { name: "x" } }, "job.spec.replica_specs[Worker].template.metadata.name"],
    [{ other: {} }, "job.spec.replica_specs[Worker].template.other"],
    [{ spec: { tolerations: "all" } }, "job.spec.replica_specs[Worker].template.spec.tolerations"],
  ];
  for (const [template, field] of refusals) {
    const refused = await call(method.updateJob, update(template));
    assert.equal(refused.error?.code, "INVALID_ARGUMENT");
    assert.deepEqual(
      refused.error?.fields.map((one) => one.field),
      [field],
    );
  }
  const unknown = await call(method.updateJob, update(NODES, { type: "Other" }));
  assert.deepEqual(
    unknown.error?.fields.map((one) => one.field),
    ["job.spec.replica_specs[Other].template"],
  );
  assert.equal(JSON.stringify(store.jobs.get("default/mnist")), before);
});
