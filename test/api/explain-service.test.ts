import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { explainJob } from "../../src/api/explain-job.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { PluginRecord } from "../../src/core/job/task-info.ts";
import { serveKinds } from "../../src/core/kinds/registry.ts";
import { ExplainJobRequestSchema } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { etlEntry } from "../core/service-world.ts";
import { admit, jobOf, START_MS } from "../core/world.ts";

serveKinds([etlEntry]);

const record = {
  admission: 1,
  attempt: 1,
  stage: "handle",
  state: { version: 0, value: null },
  notBeforeMs: 0,
} as const;

function withPlugin(plugin: Pick<PluginRecord, "failedCalls" | "lastFailure"> & Partial<PluginRecord>): Job {
  const job = admit(jobOf({ kind: "EtlJob", replicaSpecs: {} }), { cluster: "", nowMs: START_MS, number: 1 });
  return { ...job, status: { ...job.status, phase: "STARTING", plugin: { ...record, ...plugin } } };
}

function ended(job: Job): Job {
  const admissions = job.admissions.map((admission) => ({ ...admission, state: "ended" as const }));
  return { ...job, status: { ...job.status, phase: "SUCCEEDED" }, admissions };
}

const cases: Record<string, { readonly job: Job; readonly says: RegExp }> = {
  "whose plugin fails, how often and why": {
    job: withPlugin({ failedCalls: 1, lastFailure: "no route" }),
    says: /starts at its service: .*; its plugin has failed once since, the last time because: no route$/,
  },
  "that cannot be ended, in which call its plugin fails and why": {
    job: ended(withPlugin({ stage: "finalize", failedCalls: 3, lastFailure: "no route" })),
    says: /succeeded; what .* is still being ended: finalize of its plugin has failed 3 times, the last time because: no route$/,
  },
};
for (const [name, { job, says }] of Object.entries(cases)) {
  test(`explain tells of a job at a service ${name}`, async () => {
    const reads = {
      getJob: async () => ({ job, position: null, tokens: [] }),
      refusalOf: () => assert.fail("it does not wait"),
    } as unknown as Parameters<typeof explainJob>[0];
    const { summary } = await explainJob(reads, create(ExplainJobRequestSchema, { name: job.name }));
    assert.match(summary, says);
  });
}
