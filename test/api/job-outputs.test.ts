import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toJson } from "@bufbuild/protobuf";
import { toProtoInfo } from "../../src/api/job/convert-task-info.ts";
import type { RecordedInfo } from "../../src/core/job/task-info.ts";
import { TaskInfoSchema } from "../../src/gen/gangway/v1/job_pb.ts";
import { etlEntry } from "../core/kinds/plugin-world.ts";
import { jobOf } from "../core/reconcile/world.ts";
import { kindsWith } from "../support/kinds.ts";

const kinds = kindsWith(etlEntry);
const job = jobOf({ kind: "EtlJob", replicaSpecs: {} }, {}, kinds);
const info: RecordedInfo = {
  phase: "SUCCESS",
  version: 0,
  reason: "",
  logs: [],
  externalResources: [],
  occurredAtMs: null,
  reportedAtMs: null,
  additionalReasons: [],
  customInfo: null,
};

test("a job's info shows the outputs that its plugin has recorded, as they are", () => {
  const kind = kinds.kindOf("EtlJob");
  const outputs = { rows: 12, table: "t", parts: ["a", { b: true }] };
  const shown = toProtoInfo({ ...job, status: { ...job.status, info, outputs } }, { kind, logs: [] });
  assert.ok(shown !== undefined);
  const answer = toJson(TaskInfoSchema, create(TaskInfoSchema, shown));
  assert.deepEqual(answer, { phase: "TASK_PHASE_SUCCESS", outputs });
  const without = toProtoInfo({ ...job, status: { ...job.status, info } }, { kind, logs: [] });
  assert.equal(create(TaskInfoSchema, without ?? {}).outputs, undefined);
  assert.equal(toProtoInfo(job, { kind, logs: [] }), undefined, "nothing is told before the plugin was called");
});
