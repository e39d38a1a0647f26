import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { explainJob } from "../../src/api/job/explain-job.ts";
import { CallAccess } from "../../src/api/rpc/call-access.ts";
import { ANONYMOUS } from "../../src/core/access/identity.ts";
import { ExplainJobRequestSchema } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { pytorch, Scene } from "../core/reconcile/scene.ts";
import { OWN_KINDS } from "../support/kinds.ts";

const access = new CallAccess(null, { identity: ANONYMOUS, rpc: "gangway.v1.JobService/ExplainJob" });
const context = { signal: new AbortController().signal, identity: ANONYMOUS, access, violations: [] };

/** What ExplainJob says of a job of priority 10 with this effective one. */
function explained(effectivePriority: number | null, started = false) {
  const { job: admitted } = new Scene(pytorch());
  const spec = { ...admitted.spec, priority: 10 };
  const waiting = { ...admitted, status: { ...admitted.status, phase: "WAITING" as const }, admissions: [] };
  const job = { ...(started ? admitted : waiting), spec };
  const reads = {
    silentClusters: async () => new Map(),
    plannedNodes: async () => null,
    failureLogs: async () => null,
    getJob: async () => ({ job, position: started ? null : 2, effectivePriority, tokens: [] }),
    refusalOf: async () => null,
  } as unknown as Parameters<typeof explainJob>[0]["reads"];
  return explainJob(
    { reads, kinds: OWN_KINDS, simulate: async () => null, clock: { nowMs: () => 0 } },
    create(ExplainJobRequestSchema, { name: job.name }),
    context,
  );
}

test("explain says by how much the priority of a waiting job has grown, beside its position", async () => {
  const { summary, position, effectivePriority } = await explained(12);
  assert.match(summary, /, position 2, effective priority 12 \(10, grown by 2\): /);
  assert.deepEqual([position, effectivePriority], [2, 12]);
});

test("explain says nothing of a priority that has not grown, and names it in the answer", async () => {
  for (const effective of [10, null]) {
    const { summary, effectivePriority } = await explained(effective);
    assert.match(summary, /, position 2: /);
    assert.equal(effectivePriority, 10);
  }
});

test("a job that runs has no effective priority", async () => {
  const { effectivePriority, position } = await explained(null, true);
  assert.deepEqual([effectivePriority, position], [undefined, undefined]);
});
