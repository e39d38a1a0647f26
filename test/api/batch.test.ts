import assert from "node:assert/strict";
import { test } from "node:test";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { CreateJobResponse_OutcomeSchema, JobService, JobView } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { BadRequestSchema, ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

const { method } = JobService;

test("each request of a batch has its own result; errors have the details of CreateJob", async (t) => {
  const { call, woken } = await startFixture(t);
  await call(method.createJob, { job: pytorchJob("taken") });
  const wrong = pytorchJob("Wrong_Name", { kind: "Nonsense" });
  const alone = await call(method.createJob, { job: wrong, requestId: "x".repeat(200) });
  const answer = await call(method.batchCreateJobs, {
    requests: [
      { job: pytorchJob("a"), requestId: "r1" },
      { job: wrong, requestId: "x".repeat(200) },
      {},
      { job: pytorchJob("taken", { priority: 3 }) },
      { job: pytorchJob("a"), requestId: "r1" },
      { job: pytorchJob("b"), validateOnly: true },
      { job: { ...pytorchJob("nul"), metadata: { name: "nul", labels: { a: "\0" } } } },
      { job: pytorchJob("c") },
    ],
  });
  assert.equal(answer.error, null);
  const outcomes = answer.ok.results.map(({ result }) =>
    result.case === "response"
      ? CreateJobResponse_OutcomeSchema.values.find(({ number }) => number === result.value.outcome)?.localName
      : result.value?.code,
  );
  assert.deepEqual(outcomes, ["CREATED", 3, 3, 6, "REPLAYED", "VALID", 3, "CREATED"]);
  const refused = answer.ok.results[1]!.result;
  assert.ok(refused.case === "error");
  const details = (index: number) => {
    const { result } = answer.ok.results[index]!;
    return result.case === "error" ? result.value.details : [];
  };
  const fields = details(1).map((detail) => anyUnpack(detail, BadRequestSchema)?.fieldViolations ?? [])[0];
  assert.deepEqual(
    fields?.map(({ field, description }) => ({ field, description })),
    alone.error?.fields,
  );
  assert.equal(refused.value.message, alone.error?.message);
  const reasons = details(3).map((detail) => anyUnpack(detail, ErrorInfoSchema)?.reason);
  assert.deepEqual(reasons, ["JOB_NAME_TAKEN"]);
  assert.ok(woken.planner >= 2);
});

test("a batch shows jobs without templates by default", async (t) => {
  const { call } = await startFixture(t);
  const templateOf = async (view: JobView) => {
    const answer = await call(method.batchCreateJobs, { requests: [{ job: pytorchJob("a") }], view });
    const result = answer.ok?.results[0]?.result;
    assert.ok(result?.case === "response");
    return result.value.job?.spec?.replicaSpecs["Worker"]?.template;
  };
  assert.equal(await templateOf(JobView.UNSPECIFIED), undefined);
  assert.notEqual(await templateOf(JobView.FULL), undefined);
});

test("other calls get turns while a batch of wrong jobs is checked", async (t) => {
  let turn = 0;
  const turns = new Set<number>();
  const check = async () => {
    turns.add(turn);
    return [{ field: "job.metadata.name", message: "is wrong" }];
  };
  const { call } = await startFixture(t, { intake: { check, submitAll: async () => [] } as never });
  const next = () => {
    turn += 1;
    ticking = setImmediate(next);
  };
  let ticking = setImmediate(next);
  t.after(() => clearImmediate(ticking));
  const wrong = { job: pytorchJob("a"), requestId: "x".repeat(200) };
  const { ok } = await call(method.batchCreateJobs, { requests: Array.from({ length: 1000 }, () => wrong) });
  assert.equal(ok?.results.filter(({ result }) => result.case === "error").length, 1000);
  assert.ok(turns.size >= 10, `1000 jobs were checked in ${turns.size} turns of the event loop`);
});

test("a batch of 0 or more than 1,000 requests is refused as a whole", async (t) => {
  const { call, store } = await startFixture(t);
  const none = await call(method.batchCreateJobs, { requests: [] });
  assert.deepEqual([none.error?.code, none.error?.fields[0]?.field], ["INVALID_ARGUMENT", "requests"]);
  const requests = Array.from({ length: 1001 }, (_, at) => ({ job: pytorchJob(`j${at}`) }));
  const many = await call(method.batchCreateJobs, { requests });
  assert.deepEqual([many.error?.code, many.error?.fields[0]?.field], ["INVALID_ARGUMENT", "requests"]);
  assert.equal(store.jobs.size, 0);
});
