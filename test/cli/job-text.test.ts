import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { podsCell, reasonCell, tokensText } from "../../src/cli/output/job-words.ts";
import {
  type AdmissionSchema,
  CleanPodPolicy,
  JobPhase,
  JobSchema,
  PartialPolicy,
  TaskPhase,
} from "../../src/gen/gangway/v1/job_pb.ts";

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

test("a job whose members gave tokens back says so while the others run, and what it holds", () => {
  const admission = {
    members: { Worker: 3, Evaluator: 1 },
    returned: { Worker: 2, Evaluator: 1 },
    tokens: [{ pool: "gpu/h100", amount: 2n }],
  };
  const says = (phase: JobPhase) => reasonCell(create(JobSchema, { status: { phase, totalReplicas: 4, admission } }));
  assert.equal(says(JobPhase.RUNNING), "3 ended pods gave back their tokens, holds 2 gpu/h100");
  assert.equal(says(JobPhase.SUCCEEDED), "");
});

const { ALL, RUNNING, NONE } = CleanPodPolicy;
const left: Record<string, { readonly status: MessageInitShape<typeof JobSchema>["status"]; readonly says: string }> = {
  "while it runs": { status: { phase: JobPhase.RUNNING, cleanPodPolicy: ALL }, says: "3/4" },
  "that all are kept of": { status: { phase: JobPhase.SUCCEEDED, cleanPodPolicy: NONE }, says: "3/4" },
  "that keeps those that have ended": { status: { phase: JobPhase.FAILED, cleanPodPolicy: RUNNING }, says: "1/4" },
  "that keeps none": { status: { phase: JobPhase.SUCCEEDED, cleanPodPolicy: ALL }, says: "0/4" },
  "that was cancelled": { status: { phase: JobPhase.CANCELLED, cleanPodPolicy: NONE }, says: "1/4" },
  "whose pods are gone": {
    status: { phase: JobPhase.SUCCEEDED, cleanPodPolicy: NONE, admission: { goneTime: { seconds: 1n } } },
    says: "0/4",
  },
};
for (const [name, { status, says }] of Object.entries(left)) {
  test(`the pods of a job ${name} are ${says}`, () => {
    const replicaStatuses = { Worker: { active: 2, succeeded: 0 }, Master: { succeeded: 1, failed: 1 } };
    const job = create(JobSchema, { status: { ...status, totalReplicas: 4, replicaStatuses } as typeof status });
    assert.equal(podsCell(job), says);
  });
}

test("a gang that was admitted in part says that it grows, unless that restarts ended members or it has ended", () => {
  const says = (admission: MessageInitShape<typeof AdmissionSchema>, phase: JobPhase = JobPhase.RUNNING) =>
    reasonCell(create(JobSchema, { status: { phase, totalReplicas: 8, admission } }));
  const members = { Worker: 4 };
  const grows = "it has 4 of 8 pods, and grows once others fit, without preempting; explain says what is in the way";
  assert.equal(says({ members }), grows);
  assert.equal(says({ members: { Worker: 8 } }), "");
  assert.equal(says({ members }, JobPhase.FAILED), "");
  const back = "1 ended pod gave back its tokens";
  assert.equal(says({ members, returned: { Worker: 1 } }), `${grows}; ${back}`);
  assert.equal(says({ members, returned: { Worker: 1 }, partial: PartialPolicy.RESTART }), back);
});
