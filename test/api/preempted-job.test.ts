import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { recordOf, toProtoJob } from "../../src/api/job/convert-job.ts";
import { explainJob } from "../../src/api/job/explain-job.ts";
import { CallAccess } from "../../src/api/rpc/call-access.ts";
import { ANONYMOUS } from "../../src/core/access/identity.ts";
import type { Job } from "../../src/core/job/job.ts";
import { refuse } from "../../src/core/plan/explain/refuse.ts";
import { JobSchema } from "../../src/gen/gangway/v1/job_pb.ts";
import { ExplainJobRequestSchema } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { pytorch, Scene } from "../core/reconcile/scene.ts";
import { OWN_KINDS } from "../support/kinds.ts";

function preempted(): Job {
  const scene = new Scene(pytorch()).start();
  const message = "it was preempted for ml/train, whose queue takes back its own quota";
  const eviction = { admission: 1, reason: "Preempted", message, preemption: "InCohortReclamation" } as const;
  scene.job = { ...scene.job, status: { ...scene.job.status, eviction } };
  scene.step();
  return scene.job;
}

const SHOWN = { view: "BASIC", kinds: OWN_KINDS } as const;

test("a preempted job shows by whom, how often, and that it has not failed", () => {
  const { status } = create(JobSchema, toProtoJob(recordOf(preempted()), SHOWN));
  const { user, system, preemptions } = status?.attempts ?? {};
  assert.deepEqual([user, system, preemptions], [0, 0, 1]);
  const condition = status?.conditions.find(({ type }) => type === "Preempted");
  assert.deepEqual([condition?.status, condition?.reason], ["True", "InCohortReclamation"]);
  assert.match(condition?.message ?? "", /^Admission 1 to cluster c1 is undone: it was preempted for ml\/train,/);
  assert.equal(status?.waiting?.reason, "Backoff");
  assert.equal(
    create(JobSchema, toProtoJob(recordOf(new Scene(pytorch()).job), SHOWN)).status?.attempts?.preemptions,
    0,
  );
});

const access = new CallAccess(null, { identity: ANONYMOUS, rpc: "gangway.v1.JobService/ExplainJob" });
const context = { signal: new AbortController().signal, identity: ANONYMOUS, access, violations: [] };

test("explain of a preempted job says who has preempted it, and that its pods still go", async () => {
  const job = preempted();
  const said = refuse({ uid: job.uid, generation: 1 }, { reason: "Backoff", message: "it may be admitted again" });
  for (const refusal of [null, said]) {
    const reads = {
      silentClusters: async () => new Map(),
      plannedNodes: async () => null,
      failureLogs: async () => null,
      getJob: async () => ({ job, position: 1, tokens: [] }),
      refusalOf: async () => (refusal === null ? null : { refusal, atMs: 1 }),
    } as unknown as Parameters<typeof explainJob>[0]["reads"];
    const request = create(ExplainJobRequestSchema, { name: job.name });
    const { summary, reason } = await explainJob(
      { reads, kinds: OWN_KINDS, simulate: async () => null, clock: { nowMs: () => 0 } },
      request,
      context,
    );
    assert.equal(reason, "Backoff");
    assert.match(summary ?? "", /its pods on c1 are still being removed$/);
    if (refusal === null) assert.match(summary ?? "", /it was preempted for ml\/train/);
  }
});

test("explain says that a job was preempted as long as its condition is True, once", async () => {
  const preemption = "it was preempted for ml/train, whose queue takes back its own quota";
  const job = preempted();
  const explained = async (status: Job["status"], message: string) => {
    const refusal = refuse({ uid: job.uid, generation: 1 }, { reason: "QuotaExhausted", message });
    const reads = {
      silentClusters: async () => new Map(),
      plannedNodes: async () => null,
      failureLogs: async () => null,
      getJob: async () => ({ job: { ...job, status }, position: 1, tokens: [] }),
      refusalOf: async () => ({ refusal, atMs: 1 }),
    } as unknown as Parameters<typeof explainJob>[0]["reads"];
    const request = create(ExplainJobRequestSchema, { name: job.name });
    return (
      (
        await explainJob(
          { reads, kinds: OWN_KINDS, simulate: async () => null, clock: { nowMs: () => 0 } },
          request,
          context,
        )
      ).summary ?? ""
    );
  };
  const { status } = job;
  const still = "; its pods on c1 are still being removed";
  const waits = await explained(status, "needs 3");
  assert.ok(waits.endsWith(`: needs 3; ${preemption} (InCohortReclamation)${still}`), waits);
  const backsOff = await explained(status, `its admission was undone because ${preemption}`);
  assert.equal(backsOff.split(preemption).length, 2, backsOff);
  const suspended = await explained({ ...status, phase: "SUSPENDED" }, "");
  assert.match(suspended, /resumed; it was preempted for ml\/train/);
  const conditions = status.conditions.map((one) =>
    one.type === "Preempted" ? { ...one, status: "False" as const } : one,
  );
  assert.ok((await explained({ ...status, conditions }, "needs 3")).endsWith(`: needs 3${still}`));
});
