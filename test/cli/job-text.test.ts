import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { reasonCell, tokensText } from "../../src/cli/output/job-text.ts";
import { JobPhase, JobSchema, TaskPhase } from "../../src/gen/gangway/v1/job_pb.ts";

const cases: Record<string, { readonly phase: JobPhase; readonly says: string }> = {
  "shown while it runs": { phase: JobPhase.RUNNING, says: "running: 3 rows" },
  "not shown once it is cancelled": { phase: JobPhase.CANCELLED, says: "" },
  "not shown while it is suspended": { phase: JobPhase.SUSPENDED, says: "" },
};
for (const [name, { phase, says }] of Object.entries(cases)) {
  test(`the last report of a job's plugin is ${name}`, () => {
    const info = { phase: TaskPhase.RUNNING, reason: "3 rows" };
    assert.equal(reasonCell(create(JobSchema, { status: { phase, info } })), says);
  });
}

test("the tokens of an admission have one amount for each pool", () => {
  const token = (pool: string, amount: bigint) => ({ pool, amount });
  assert.equal(tokensText([]), "");
  assert.equal(
    tokensText([token("gpu/h100", 4n), token("gpu/a100", 2n), token("gpu/h100", 4n)]),
    "8 gpu/h100, 2 gpu/a100",
  );
});

test("a job whose members gave tokens back says so while the others run", () => {
  const admission = { returned: { Worker: 2, Evaluator: 1 } };
  const says = (phase: JobPhase) => reasonCell(create(JobSchema, { status: { phase, totalReplicas: 4, admission } }));
  assert.equal(says(JobPhase.RUNNING), "3 ended pods gave back their tokens");
  assert.equal(says(JobPhase.SUCCEEDED), "");
});
