import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { explainJob } from "../../src/api/job/explain-job.ts";
import { CallAccess } from "../../src/api/rpc/call-access.ts";
import { ANONYMOUS } from "../../src/core/access/identity.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { PluginRecord } from "../../src/core/job/task-info.ts";
import { ExplainJobRequestSchema } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { etlEntry } from "../core/kinds/plugin-world.ts";
import { admit, jobOf, START_MS } from "../core/reconcile/world.ts";
import { kindsWith } from "../support/kinds.ts";

const kinds = kindsWith(etlEntry);

const record = {
  admission: 1,
  attempt: 1,
  stage: "handle",
  state: { version: 0, value: null },
  notBeforeMs: 0,
} as const;

function withPlugin(plugin: Pick<PluginRecord, "failedCalls" | "lastFailure"> & Partial<PluginRecord>): Job {
  const job = admit(jobOf({ kind: "EtlJob", replicaSpecs: {} }, {}, kinds), {
    cluster: null,
    nowMs: START_MS,
    number: 1,
  });
  return { ...job, status: { ...job.status, phase: "STARTING", plugin: { ...record, ...plugin } } };
}

function ended(job: Job): Job {
  const admissions = job.admissions.map((admission) => ({ ...admission, state: "ended" as const }));
  return { ...job, status: { ...job.status, phase: "SUCCEEDED" }, admissions };
}

const cases: Record<string, { readonly job: Job; readonly says: RegExp }> = {
  "how often its plugin has failed, and why": {
    job: withPlugin({ failedCalls: 1, lastFailure: "no route" }),
    says: /starts at its service: .*; since then its plugin has failed once, most recently: no route$/,
  },
  "which call of its plugin fails at the end, and why": {
    job: ended(withPlugin({ stage: "finalize", failedCalls: 3, lastFailure: "no route" })),
    says: new RegExp(
      "succeeded; the work .* is still being ended: " +
        "finalize of its plugin has failed 3 times, most recently: no route$",
    ),
  },
};
for (const [name, { job, says }] of Object.entries(cases)) {
  test(`explain of a job at a service says ${name}`, async () => {
    const reads = {
      silentClusters: async () => new Map(),
      plannedNodes: async () => null,
      failureLogs: async () => null,
      getJob: async () => ({ job, position: null, tokens: [] }),
      refusalOf: () => assert.fail("it does not wait"),
    } as unknown as Parameters<typeof explainJob>[0]["reads"];
    const request = create(ExplainJobRequestSchema, { name: job.name });
    const access = new CallAccess(null, { identity: ANONYMOUS, rpc: "gangway.v1.JobService/ExplainJob" });
    const context = { signal: new AbortController().signal, identity: ANONYMOUS, access, violations: [] };
    const { summary } = await explainJob(
      { reads, kinds, simulate: async () => null, clock: { nowMs: () => 0 } },
      request,
      context,
    );
    assert.match(summary, says);
  });
}
