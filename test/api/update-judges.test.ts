/** UpdateJob judges the pods of a job that was made before they were judged: it may ask for less, but not for more. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { JobService, type UpdateJobRequestSchema } from "../../src/gen/gangway/v1/job_service_pb.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

const { createJob, updateJob } = JobService.method;
type Update = MessageInitShape<typeof UpdateJobRequestSchema>;

/** No API server takes an environment variable that is a number. */
const WRONG: JsonObject = {
  spec: { containers: [{ name: "pytorch", image: "i", env: [{ name: "EPOCHS", value: 3 }] }] },
};
const fieldOf = (role: string) => `job.spec.replica_specs[${role}].template.spec.containers[0].env[0].value`;

type Made = { readonly suspend?: boolean; readonly setAside?: boolean; readonly wrong?: "Master" | "Worker" };

/** A service with a job. No API server takes the pods of its replica type `wrong`. */
async function madeBefore(t: TestContext, { suspend = false, setAside = false, wrong = "Worker" }: Made = {}) {
  const { call, store } = await startFixture(t);
  const made = await call(createJob, { job: pytorchJob("mnist", { priority: 5, runPolicy: { suspend } }) });
  assert.equal(made.error, null);
  const { job, sent } = store.jobs.get("default/mnist") ?? assert.fail("there is the job");
  const replica = job.spec.replicaSpecs[wrong] ?? assert.fail("the job has this replica type");
  const spec = { ...job.spec, replicaSpecs: { ...job.spec.replicaSpecs, [wrong]: { ...replica, template: WRONG } } };
  const aside = { sinceMs: 1, reason: "BlocksWorkers", message: "It is set aside." } as const;
  store.put({ ...job, spec, status: { ...job.status, ...(setAside ? { setAside: aside } : {}) } }, sent);
  const stored = () => store.jobs.get("default/mnist")?.job ?? assert.fail("there is the job");
  return { call, stored };
}

const REPLICAS = "spec.replica_specs.*.replicas";
const SUSPEND = "spec.run_policy.suspend";
const changed = (spec: object, ...paths: readonly string[]) =>
  ({
    job: { metadata: { name: "mnist", labels: { team: "nlp" } }, spec },
    updateMask: { paths: [...paths] },
  }) as Update;
const workers = (replicas: number) => changed({ replicaSpecs: { Worker: { replicas } } }, REPLICAS);
const suspended = (suspend: boolean) => changed({ runPolicy: { suspend } }, SUSPEND);

type Case = { readonly update: Update; readonly job?: Made };

const more: Readonly<Record<string, Case>> = {
  "to be resumed": { update: suspended(false), job: { suspend: true } },
  "to be resumed after it was set aside": { update: suspended(false), job: { setAside: true } },
  "for more replicas": { update: workers(3) },
  "for more replicas of another type than the wrong one": {
    update: workers(3),
    job: { wrong: "Master" },
  },
  "for a higher priority": { update: changed({ priority: 6 }, "spec.priority") },
  "for a higher priority beside less": {
    update: changed({ priority: 6, replicaSpecs: { Worker: { replicas: 1 } } }, "spec.priority", REPLICAS),
  },
};
for (const [name, { update, job }] of Object.entries(more)) {
  test(`a job whose pods API servers refuse asks ${name}: refused at the field, and nothing changes`, async (t) => {
    const { call, stored } = await madeBefore(t, job);
    const before = stored();
    const { error } = await call(updateJob, update);
    assert.deepEqual(
      [error?.code, error?.fields],
      [
        "INVALID_ARGUMENT",
        [{ field: fieldOf(job?.wrong ?? "Worker"), description: 'is 3: must be text, so write "3" in quotes' }],
      ],
    );
    assert.deepEqual(stored(), before);
  });
}

const notMore: Readonly<Record<string, Case>> = {
  "to be suspended": { update: suspended(true) },
  "for fewer replicas": { update: workers(1) },
  "for a lower priority": { update: changed({ priority: 4 }, "spec.priority") },
  "for other labels": { update: changed({}, "metadata.labels") },
  "for fewer replicas and other labels while it is suspended": {
    update: changed({ replicaSpecs: { Worker: { replicas: 1 } } }, REPLICAS, "metadata.labels"),
    job: { suspend: true },
  },
};
for (const [name, { update, job }] of Object.entries(notMore)) {
  test(`a job whose pods API servers refuse asks ${name}: allowed`, async (t) => {
    const { call, stored } = await madeBefore(t, job);
    const { ok, error } = await call(updateJob, update);
    assert.deepEqual([error, ok?.job?.metadata?.resourceVersion], [null, "2"]);
    assert.equal(stored().version, 2);
  });
}
