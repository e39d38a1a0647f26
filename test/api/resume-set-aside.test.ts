/** Who may resume a job that was set aside, and how often. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { CallError } from "../../src/cli/rpc/call-error.ts";
import { connect } from "../../src/cli/rpc/client.ts";
import type { JobStatus } from "../../src/core/job/status.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { knownCallers } from "../support/known-callers.ts";
import { memoryAccess } from "../support/memory-access.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

const { createJob, updateJob } = JobService.method;
const update = {
  job: { metadata: { name: "mnist" }, spec: { runPolicy: { suspend: false } } },
  updateMask: { paths: ["spec.run_policy.suspend"] },
};

/** A job that was set aside, and callers with one role each in its namespace. */
async function scene(t: TestContext) {
  const known = await knownCallers(t);
  const access = memoryAccess({ enforces: true });
  const { authenticate, robots } = known;
  const { authorization, admin } = access;
  const { api, store } = await startFixture(t, { authenticate, robots, authorization, access: admin });
  const clientAs = async (role: string) => {
    const { subject, token } = await known.caller("oidc", role);
    const to = { kind: "subject", name: subject } as const;
    await access.bind({ to, role, scope: { kind: "namespace", name: "default" } });
    await access.bind({ to, role, scope: { kind: "queue", name: "default" } });
    const client = connect(api.address, new AbortController().signal, { tls: null, token: async () => token });
    t.after(() => client.close());
    return client;
  };
  const submitter = await clientAs("submitter");
  await submitter.call(createJob, { job: pytorchJob() });
  const statusOf = () => store.jobs.get("default/mnist")?.job.status ?? assert.fail("there is the job");
  const setAside = (more: Partial<JobStatus> = {}) => {
    const { job } = store.jobs.get("default/mnist") ?? assert.fail("there is the job");
    const aside = { sinceMs: 1, reason: "BlocksWorkers", message: "It is set aside." } as const;
    store.put({ ...job, status: { ...job.status, ...more, setAside: aside } });
  };
  const resumeAs = async (role: string): Promise<string> => {
    const client = role === "submitter" ? submitter : await clientAs(role);
    const refused = await client.call(updateJob, update).then(
      () => null,
      (error: unknown) => (error instanceof CallError ? error : assert.fail(String(error))),
    );
    return refused === null ? "resumed" : `${refused.code} ${refused.details}`;
  };
  return { setAside, resumeAs, statusOf };
}

test("who may change a job resumes it three times a day, and the fourth time only who may reinstate it", async (t) => {
  const { setAside, resumeAs, statusOf } = await scene(t);
  for (let time = 0; time < 3; time += 1) {
    setAside();
    assert.equal(await resumeAs("submitter"), "resumed");
    assert.equal(statusOf().setAside, undefined);
  }
  setAside();
  const before = statusOf();
  assert.match(
    await resumeAs("submitter"),
    /resumed 3 times within a day: only .* jobs\.reinstate, such as an operator/,
  );
  assert.deepEqual(statusOf(), before, "a refusal changes nothing");
  assert.match(await resumeAs("viewer"), /jobs\.update/);
  assert.deepEqual(statusOf(), before);
  assert.equal(await resumeAs("operator"), "resumed");
  assert.equal(statusOf().setAside, undefined);
});

test("a day later the job is resumed again by who may change it", async (t) => {
  const { setAside, resumeAs } = await scene(t);
  setAside({ setAsideResumesMs: [1, 2, 3] });
  assert.equal(await resumeAs("submitter"), "resumed");
});
